// The array that is chosen: what it takes and why, what to change, and its layout.

import { bytes, el, fill, grouped, redrawn, shortPath } from "../dom";
import { code, prose, type Pictures } from "../said";
import type { Audit } from "./data";
import type { Row } from "./rows";
import { recommended } from "./view";

export interface Detail {
  element: HTMLElement;
  show(row: Row): void;
  close(): void;
}

/// `closed` hears of it, `opened` of the instruction whose text is asked for.
export function detail(audit: Audit, pictures: Pictures, closed: () => void, opened: ((instruction: string) => void) | null): Detail {
  const panel = el("section", { class: "detail", "aria-label": "The array that is chosen", tabindex: "-1", hidden: true });
  const announced = el("p", { class: "unseen", "aria-live": "polite" });
  function close() {
    if (panel.hidden) return;
    panel.hidden = true;
    announced.textContent = "";
    closed();
  }
  function show(row: Row) {
    const advised = recommended(audit).filter((one) => (one.instruction === null ? one.shape === row.shape : one.instruction === row.instruction));
    const { buffers } = audit.report;
    const buffer = buffers.find((buffer) => buffer.instruction === row.instruction && buffer.shape === row.shape) ?? buffers.find((buffer) => buffer.shape === row.shape);
    const picture = el("div", { class: "picture" });
    const sizes = row.bytes > 0 && [`${row.count > 1 ? `${grouped(row.count)} arrays, ` : ""}${bytes(row.bytes)}, `, row.padding > 0 ? el("strong", {}, `${bytes(row.padding)} padding`) : "no padding", " · "];
    fill(
      panel,
      el("div", { class: "row" }, el("h2", {}, el("code", {}, row.shape)), el("button", { type: "button", "aria-label": "Close", onclick: close }, "×")),
      el("p", {}, sizes, `${row.role} of `, el("code", { title: row.owner }, shortPath(row.owner)), row.instruction && [" (", opened ? el("button", { type: "button", class: "link mono", title: "To its line in the program's text", onclick: () => opened(row.instruction) }, row.instruction) : row.instruction, ")"]),
      row.path.includes("/") && el("p", { class: "muted mono" }, row.path),
      buffer?.cause && el("p", {}, `${buffer.cause[0]?.toUpperCase()}${buffer.cause.slice(1)}.`),
      advised.map((one) => el("div", { class: "fix" }, el("p", {}, one.lead && el("strong", {}, `${one.lead}: `), prose(`${one.sentence}.`)), code(one))),
      picture,
    );
    panel.hidden = false;
    announced.textContent = `Chosen: ${row.shape}, ${bytes(row.bytes)} of ${shortPath(row.owner)}. Escape closes it.`;
    panel.scrollIntoView({ block: "nearest", behavior: "smooth" });
    const draw = async () => {
      const svg = await pictures(row.shape).catch(() => null);
      if (svg) picture.innerHTML = svg;
      else fill(picture, el("p", { class: "muted" }, "Its layout isn’t drawn here. To draw it: ", el("code", {}, `tilewise draw '${row.shape}'`)));
    };
    redrawn(picture, draw);
    void draw();
  }
  return { element: el("div", {}, announced, panel), show, close };
}

