// Two programs, before and after a change, as the core compares them: what each holds at its peak, by owner; both over
// their order, on one axis; their copies, and the buffers that only one of them has.

import { bytes, el, fill, fromRoot, grouped, intoView, redrawn, shortPath, table, type Cell } from "../dom";
import type { Pictures } from "../said";
import { LEFT } from "./picture";
import { round, rounded } from "./profile";

/// As `tilewise_report::Comparison` is printed.
interface Comparison {
  headline: string;
  before: Compared;
  after: Compared;
  changes: Change[];
  /// Buffers that only one of them has.
  removed: Owner[];
  added: Owner[];
}

/// `tilewise_report::ComparisonPage`.
export interface ComparisonPage extends Comparison {
  /// How long those lists are, of which the first rows are there.
  counts: Partial<Record<"owners" | "copies" | "layouts" | "removed" | "added", number>>;
  /// Alive at each moment, before and after; none without a plan.
  live_bytes: [number[], number[]];
}

interface Compared {
  source: string;
  copies: { count: number; bytes: number };
}

interface Owner {
  op: string;
  shape: string;
  bytes: number;
  padding_bytes: number;
  file: string | null;
  line: number | null;
}

interface Change {
  what: string;
  owner: string | null;
  before: number | boolean | string | object | null;
  after: number | boolean | string | object | null;
  file: string | null;
  line: number | null;
}

export interface CompareOptions {
  /// Elements beside the title.
  actions?: HTMLElement[];
  /// Layouts, where somebody draws them.
  pictures?: Pictures;
}

export function compareView({ headline, before, after, changes, removed, added, counts, live_bytes }: ComparisonPage, { actions = [], pictures }: CompareOptions = {}): HTMLElement {
  const names = named([before.source, after.source]);
  const copied = ({ copies }: Compared) => `${bytes(copies.bytes)} in ${grouped(copies.count)}`;
  const owned = (what: string) => changes.filter((change) => change.what === what && change.owner !== null).map(changed);
  // Changes too small to be listed, as one.
  const smaller = (what: string) => changes.filter((change) => change.what === what).map((change) => changed({ ...change, owner: what }));
  const relaid = changes.filter(({ what }) => what === "layout").map(({ before, after, owner, ...place }): Cell[] => [el("code", {}, String(before)), el("code", {}, String(after)), placed(owner ?? "", place)]);
  return el(
    "article",
    { class: "compared" },
    el("header", { class: "story" }, el("div", { class: "row" }, el("h1", {}, names.join(" → ")), el("div", { class: "actions" }, actions)), el("p", { class: "lead" }, el("strong", {}, headline))),
    over(live_bytes, names),
    section("At each peak, by owner", CHANGES, [...owned("owner"), ...smaller("smaller owners")], counts.owners ?? 0),
    (before.copies.count > 0 || after.copies.count > 0) && section(`Copies: ${copied(before)} → ${copied(after)}`, CHANGES, [...owned("copies"), ...smaller("smaller copies")], counts.copies ?? 0),
    relaid.length > 0 && section("Arrays in another layout", LAYOUTS, relaid, counts.layouts ?? 0),
    buffers("Buffers that only the first has", removed, counts.removed ?? 0, pictures),
    buffers("Buffers that only the second has", added, counts.added ?? 0, pictures),
  );
}

/// The sources by their short names, unless these are equal.
function named(sources: string[]): string[] {
  const files = sources.map(fromRoot);
  return new Set(files).size > 1 ? files : sources;
}

const NUMBERS = ["before", "after", "change", "bytes", "padding"];
const CHANGES = ["before", "after", "change", "owner"];

function changed({ before: was, after: is, owner, ...place }: Change): Cell[] {
  const [before, after] = [Number(was ?? 0), Number(is ?? 0)];
  const by = el("span", { class: after > before ? "bad" : "" }, `${after > before ? "+" : "−"}${bytes(Math.abs(after - before))}`);
  return [before ? bytes(before) : "–", after ? bytes(after) : "–", by, placed(owner ?? "", place)];
}

/// Its name, which stays, and its line, which may move.
function placed(owner: string, { file, line }: Pick<Owner, "file" | "line">): string {
  return file ? `${owner} (${shortPath(line ? `${file}:${line}` : file)})` : owner;
}

const BUFFERS = ["bytes", "padding", "array", "owner"];
const LAYOUTS = ["before", "after", "array"];

/// The arrays that only one of them has; a chosen array is drawn.
function buffers(title: string, owners: Owner[], count: number, pictures: Pictures | undefined): HTMLElement {
  const picture = el("div", { class: "picture", "aria-live": "polite" });
  let chosen = "";
  const draw = async () => {
    const svg = chosen && (await pictures?.(chosen).catch(() => null));
    if (svg) picture.innerHTML = svg;
  };
  redrawn(picture, draw);
  const open = (shape: string) => async () => {
    chosen = shape;
    await draw();
    intoView(picture);
  };
  const array = (shape: string) => (pictures ? el("button", { type: "button", class: "link", onclick: open(shape) }, el("code", {}, shape)) : el("code", {}, shape));
  const rows = owners.map(({ bytes: count, padding_bytes, shape, op, ...place }) => [bytes(count), padding_bytes ? bytes(padding_bytes) : "–", array(shape), placed(op, place)]);
  return section(title, BUFFERS, rows, count, picture);
}

/// Rows before "more".
const SHOWN = 20;

/// A table of `count` rows, of which the first are there.
function section(title: string, names: string[], rows: Cell[][], count: number, below?: HTMLElement): HTMLElement {
  const place = el("div", {});
  const list = (shown: Cell[][]) => {
    const more = rows.length - shown.length;
    const left = count - rows.length;
    fill(
      place,
      table(`Table: ${title}`, names, shown, NUMBERS),
      more > 0 && el("button", { type: "button", class: "more", onclick: () => list(rows) }, `${grouped(more)} more`),
      more === 0 && left > 0 && el("p", { class: "muted" }, `${grouped(left)} more: `, el("code", {}, "tilewise audit --against"), " lists all."),
    );
  };
  if (rows.length) list(rows.slice(0, SHOWN));
  else fill(place, el("p", { class: "muted" }, "No change."));
  return el("section", { "aria-label": title }, el("h2", {}, title), place, below);
}

const LINES = [
  { color: "--muted", dash: [5, 3], words: "before" },
  { color: "--accent", dash: [], words: "after" },
];

/// Both over their order, each from its first step to its last.
function over(programs: number[][], names: string[]): HTMLElement | null {
  if (programs.some((alive) => alive.length === 0)) return null;
  const peaks = programs.map((alive) => alive.reduce((most, alive) => Math.max(most, alive), 1));
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
    programs.forEach((alive, at) => {
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
