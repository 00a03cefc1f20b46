// The array that is chosen: what it takes and why, what to change, who calls it, and its layout.

import { bytes, el, fill, grouped, redrawn, shortPath, sourceLabel, type Source } from "../dom";
import { code, prose, type Pictures } from "../said";
import { planned } from "./advice";
import { names, stands, type Audit } from "./data";
import { graph, type Neighbours } from "./graph";
import type { Row } from "./rows";

export interface Detail {
  element: HTMLElement;
  show(row: Row): void;
  close(): void;
}

export interface DetailOptions {
  pictures: Pictures;
  /// Hears that it is closed.
  closed: () => void;
  /// Hears of the instruction whose text is asked for.
  opened: ((instruction: string) => void) | null;
  /// The Python calls that led to an instruction.
  stack: ((instruction: string) => Promise<Source[]>) | undefined;
  /// The instructions around one, and who hears of one of them that is chosen.
  neighbours: ((instruction: string) => Promise<Neighbours | null>) | undefined;
  chosen: (instruction: string) => void;
}

export function detail(audit: Audit, { pictures, closed, opened, stack, neighbours, chosen }: DetailOptions): Detail {
  const panel = el("section", { class: "detail", "aria-label": "The array that is chosen", tabindex: "-1", hidden: true });
  const announced = el("p", { class: "unseen", "aria-live": "polite" });
  function close() {
    if (panel.hidden) return;
    panel.hidden = true;
    announced.textContent = "";
    closed();
  }
  function show(row: Row) {
    const advised = planned(audit).filter((one) => (one.instruction === null ? one.shape === row.shape : one.instruction === row.instruction));
    const { buffers } = audit.report;
    const buffer = buffers.find((buffer) => buffer.instruction === row.instruction && buffer.shape === row.shape) ?? buffers.find((buffer) => buffer.shape === row.shape);
    const picture = el("div", { class: "picture", tabindex: "0", role: "group", "aria-label": "Its layout" });
    const [calls, around] = [el("div", {}), el("div", {})];
    const sizes = row.bytes > 0 && [`${row.count > 1 ? `${grouped(row.count)} arrays, ` : ""}${bytes(row.bytes)}, `, row.padding > 0 ? el("strong", {}, `${bytes(row.padding)} padding`) : "no padding", " · "];
    fill(
      panel,
      el("div", { class: "row" }, el("h2", {}, el("code", {}, row.shape)), el("button", { type: "button", "aria-label": "Close", onclick: close }, "×")),
      el("p", {}, sizes, `${row.role} of `, el("code", { title: row.owner }, row.name), row.instruction && [" (", opened ? el("button", { type: "button", class: "link mono", title: "To its line in the program's text", onclick: () => opened(row.instruction) }, row.instruction) : row.instruction, ")"]),
      lifespan(row),
      row.owner !== row.name && el("p", { class: "muted mono" }, row.owner),
      row.path.includes("/") && el("p", { class: "muted mono" }, row.path),
      buffer?.cause && el("p", {}, `${buffer.cause[0]?.toUpperCase()}${buffer.cause.slice(1)}.`),
      advised.map((one) => el("div", { class: "fix" }, el("p", {}, one.lead && el("strong", {}, `${one.lead}: `), prose(`${one.sentence}.`)), code(one))),
      calls,
      around,
      picture,
    );
    panel.hidden = false;
    panel.scrollTop = 0;
    announced.textContent = `Chosen: ${row.shape}, ${bytes(row.bytes)} of ${row.name}. Escape closes it.`;
    if (stack && row.instruction && !stands(row)) void stack(row.instruction).then((frames) => frames.length > 1 && fill(calls, stackOf(frames)), () => {});
    if (neighbours && row.instruction) void neighbours(row.instruction).then((found) => fill(around, found && surroundings(found)), () => {});
    const draw = async () => {
      const svg = await pictures(row.shape).catch(() => null);
      if (svg) picture.innerHTML = svg;
      else fill(picture, el("p", { class: "muted" }, "Its layout isn’t drawn here. To draw it: ", el("code", {}, `tilewise draw '${row.shape}'`)));
    };
    redrawn(picture, draw);
    void draw();
  }
  const surroundings = (found: Neighbours) =>
    found.instructions.length > 1 && el("details", { open: true }, el("summary", {}, "Made from, and used by"), graph(found, chosen));
  /// When it is alive.
  function lifespan(row: Row): HTMLElement | null {
    const { timeline } = audit;
    if (stands(row)) return el("p", { class: "muted" }, "There for the whole run.");
    const piece = row.pieces[0];
    if (!timeline || piece === undefined || row.pieces.length > 1 || names(timeline.pieces)[piece] !== row.instruction) return null;
    const [from, to] = [timeline.pieces.first[piece]!, timeline.pieces.last[piece]!];
    return el("p", { class: "muted" }, `Alive from step ${grouped(from + 1)} to ${grouped(to + 1)}, ${grouped(to - from + 1)} of ${grouped(timeline.moments)} steps.`);
  }
  return { element: el("div", {}, announced, panel), show, close };
}

/// Calls, the innermost first.
function stackOf(frames: Source[]): HTMLElement {
  const line = (frame: Source) => el("li", { title: frame.file }, el("code", {}, shortPath(sourceLabel(frame) ?? "")));
  return el("details", { class: "stack" }, el("summary", {}, `Call stack (${grouped(frames.length)})`), el("ol", {}, frames.map(line)));
}
