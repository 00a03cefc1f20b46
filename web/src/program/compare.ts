// Two programs, before and after a change, as the core compares them: what each holds at its peak, by owner; both over
// their order, on one axis; their copies, and the buffers that only one of them has.

import { bytes, el, fromRoot, grouped, redrawn, shortPath, sourceLabel, table, type Cell, type Source } from "../dom";
import type { Buffer } from "./data";
import { LEFT } from "./picture";
import { round, rounded } from "./profile";

/// As `tilewise_report::Comparison` is printed.
export interface Comparison {
  headline: string;
  /// Before and after.
  programs: [Compared, Compared];
  diff: { owners: Change[]; copies: (Change & { class: string })[]; removed: Buffer[]; added: Buffer[] };
  /// How long those lists are, of which the first rows are there.
  counts: Record<"owners" | "copies" | "removed" | "added", number>;
}

interface Compared {
  source: string;
  /// At each moment; none without a plan.
  live_bytes: number[];
  copies: number;
  copied_bytes: number;
}

interface Change {
  owner: string | null;
  source: Source | null;
  before_bytes: number;
  after_bytes: number;
}

export function compareView({ headline, programs, diff, counts }: Comparison, actions: HTMLElement[] = []): HTMLElement {
  const [before, after] = programs;
  const names = named(programs);
  const copied = ({ copies, copied_bytes }: Compared) => `${bytes(copied_bytes)} in ${grouped(copies)}`;
  return el(
    "article",
    { class: "compared" },
    el("header", { class: "story" }, el("div", { class: "row" }, el("h1", {}, names.join(" → ")), el("div", { class: "actions" }, actions)), el("p", { class: "lead" }, el("strong", {}, headline))),
    over(programs, names),
    section("At each peak, by owner", CHANGES, diff.owners.map((change) => changed(change, owner(change))), counts.owners),
    (before.copies > 0 || after.copies > 0) && section(`Copies: ${copied(before)} → ${copied(after)}`, CHANGES, diff.copies.map((change) => changed(change, `${change.class}: ${owner(change)}`)), counts.copies),
    section("Buffers that only the first has", BUFFERS, diff.removed.map(buffer), counts.removed),
    section("Buffers that only the second has", BUFFERS, diff.added.map(buffer), counts.added),
  );
}

/// What tells them apart.
function named(programs: Compared[]): string[] {
  const files = programs.map(({ source }) => fromRoot(source));
  return new Set(files).size > 1 ? files : programs.map(({ source }) => source);
}

const NUMBERS = ["before", "after", "change", "bytes", "padding"];
const CHANGES = ["before", "after", "change", "owner"];

function changed({ before_bytes: before, after_bytes: after }: Change, owner: string): Cell[] {
  const by = el("span", { class: after > before ? "bad" : "" }, `${after > before ? "+" : "−"}${bytes(Math.abs(after - before))}`);
  return [before ? bytes(before) : "–", after ? bytes(after) : "–", by, owner];
}

/// Its name, which stays, and its line, which may move.
function owner({ owner, source }: Pick<Change, "owner" | "source">): string {
  const line = shortPath(sourceLabel(source) ?? "");
  return owner && line ? `${owner} (${line})` : (owner ?? line) || "no name";
}

const BUFFERS = ["bytes", "padding", "array", "owner"];

function buffer({ physical_bytes, padding_bytes, shape, op_name, instruction, source }: Buffer): Cell[] {
  return [bytes(physical_bytes), padding_bytes ? bytes(padding_bytes) : "–", el("code", {}, shape), owner({ owner: op_name ?? instruction, source })];
}

/// A table of so many rows, of which the first are there.
function section(title: string, names: string[], rows: Cell[][], count: number): HTMLElement {
  return el(
    "section",
    { "aria-label": title },
    el("h2", {}, title),
    rows.length ? table(`Table: ${title}`, names, rows, NUMBERS) : el("p", { class: "muted" }, "No change."),
    count > rows.length && el("p", { class: "muted" }, `${grouped(count - rows.length)} more`),
  );
}

const LINES = [
  { color: "--muted", dash: [5, 3], words: "before" },
  { color: "--accent", dash: [], words: "after" },
];

/// Both over their order, each from its first step to its last.
function over(programs: Compared[], names: string[]): HTMLElement | null {
  if (programs.some(({ live_bytes }) => live_bytes.length === 0)) return null;
  const peaks = programs.map(({ live_bytes }) => live_bytes.reduce((most, alive) => Math.max(most, alive), 1));
  const most = Math.max(...peaks);
  const canvas = el("canvas", { role: "img", "aria-label": `Memory over the order of both programs, at most ${peaks.map(bytes).join(" and ")}` });
  const frame = el("div", { class: "timeline short" }, canvas);
  const draw = () => {
    const [width, height, ratio] = [frame.clientWidth, frame.clientHeight, devicePixelRatio || 1];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const context = canvas.getContext("2d");
    if (!context || width <= LEFT) return;
    const style = getComputedStyle(frame);
    const color = (name: string) => style.getPropertyValue(name).trim();
    context.scale(ratio, ratio);
    context.font = `11px ${style.fontFamily}`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.lineWidth = 1.5;
    const y = (amount: number) => height - 6 - (amount / most) * (height - 20);
    for (const amount of round(most, 4)) {
      context.fillStyle = color("--line");
      context.fillRect(LEFT, Math.round(y(amount)), width - LEFT, 1);
      context.fillStyle = color("--muted");
      context.fillText(rounded(amount), LEFT - 6, y(amount));
    }
    const columns = Math.floor(width - LEFT);
    programs.forEach(({ live_bytes: alive }, at) => {
      context.strokeStyle = color(LINES[at]!.color);
      context.setLineDash(LINES[at]!.dash);
      context.beginPath();
      for (let column = 0; column < columns; column++) {
        const from = Math.floor((column * alive.length) / columns);
        const to = Math.max(from + 1, Math.floor(((column + 1) * alive.length) / columns));
        // A column of pixels never misses the peak.
        context.lineTo(LEFT + column, y(alive.slice(from, to).reduce((most, one) => Math.max(most, one))));
      }
      context.stroke();
    });
  };
  redrawn(frame, draw);
  new ResizeObserver(draw).observe(frame);
  const keys = names.map((name, at) => el("span", {}, el("i", { style: `background:var(${LINES[at]!.color})` }), `${LINES[at]!.words}: ${name}`));
  return el("section", { "aria-label": "Memory over both programs' order" }, el("h2", {}, "Memory over the programs’ order"), frame, el("p", { class: "keys" }, keys));
}
