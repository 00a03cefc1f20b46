// An out-of-memory message: how the memory is filled, what is wrong, and what to do.

import { bytes, el, fill, grouped, intoView, percent, redrawn, shortPath, sourceLabel, table, type Cell, type Source } from "../dom";
import type { Remark } from "../program/data";
import { advised, code, prose, said, type Pictures } from "../said";

interface Part {
  kind: string;
  name: string;
  bytes: number;
}

/// A picture of the memory: parts side by side, the lost bytes in them, and the room that there is.
interface Stack {
  parts: Part[];
  total_bytes: number;
  within: Part[];
  room: Part[];
}

/// A line of the reader's program.
interface Frame {
  file: string;
  line: number;
  code: string | null;
}

/// A text in one line, and in its characters where each figure stands that was read.
interface Quote {
  text: string;
  marks: [number, number][];
}

/// The summary of a message, as `tilewise_report::MessageSummary` is printed.
interface Summary {
  headline: { sentence: string; tone: string };
  raised_at: Frame | null;
  verdict: string;
  stack: Stack | null;
  /// Of each piece of advice, what it frees, and of how much that is missing.
  changes: { lead: string; effect: string }[];
  shortfall: Remark | null;
  notes: Remark[];
  quote: Quote | null;
}

interface Hint {
  kind: string;
  target: string;
  shape: string | null;
  sentence: string;
  code: string | null;
  imports: string | null;
}

interface Allocation {
  section: string;
  label: string | null;
  shape: string | null;
  /// The part of a kernel it holds, and the block and how many of them; the shape then is one of bytes.
  window: string | null;
  block: string | null;
  buffers: number | null;
  reported_bytes: number | null;
  physical_bytes: number | null;
  padding_bytes: number | null;
  cause: string | null;
  op_name: string | null;
  source: Source | null;
}

/// An explanation, as `tilewise explain --format json` prints it.
export interface Explanation {
  verdict: string;
  module: string | null;
  used_bytes: number | null;
  limit_bytes: number | null;
  advice: Hint[];
  allocations: Allocation[];
}

/// That, and what is said first.
export interface Explained {
  explanation: Explanation;
  summary: Summary;
}

export function messageView({ explanation, summary }: Explained, text: string, pictures: Pictures): HTMLElement {
  const { headline, raised_at: raised, verdict, stack, changes, shortfall, notes, quote } = summary;
  return el(
    "article",
    { class: "message", "data-verdict": explanation.verdict },
    el(
      "header",
      { class: "story" },
      el("h1", { class: headline.tone === "bad" ? "bad" : "", "aria-live": "polite" }, prose(headline.sentence), " ", el("span", { class: "muted" }, explanation.module ?? "")),
      raised && el("p", { class: "muted" }, `${shortPath(raised.file)}:${raised.line} `, raised.code && el("code", {}, raised.code)),
      el("p", { class: "lead" }, prose(verdict)),
      budget(stack ?? whole(explanation)),
    ),
    explanation.advice.length > 0 && el("section", { class: "advice", "aria-label": "What to do" }, el("h2", {}, "What to do"), el("ol", {}, explanation.advice.map((hint, at) => advice(hint, changes[at]))), shortfall && el("p", {}, said(shortfall))),
    notes.map((note) => el("p", {}, said(note))),
    allocations(explanation, pictures),
    quote && el("section", { "aria-label": "What was read" }, el("h2", {}, "What was read"), el("blockquote", {}, marked(quote))),
    text && el("details", {}, el("summary", {}, "The message"), el("pre", { class: "scroll", tabindex: "0" }, text)),
  );
}

const COLORS: Record<string, string> = {
  arguments: "--resident",
  results: "--resident-2",
  temporaries: "--tile-0",
  others: "--tile-3",
  program: "--tile-2",
  fragmentation: "--tile-4",
  asked: "--tile-0",
  piece: "--resident",
  scattered: "--raised",
  padding: "--raised",
  available: "--muted",
};

/// The bytes needed in one piece, where the message tells of no parts.
function whole({ used_bytes: used, limit_bytes: limit }: Explanation): Stack | null {
  if (!used || !limit) return null;
  const part = (kind: string, name: string, bytes: number) => [{ kind, name, bytes }];
  return { parts: part("temporaries", "needed", used), total_bytes: used, within: [], room: part("available", "available", limit) };
}

/// To one scale: the parts side by side, under them what of it is lost, and what there is, whose end is a line through
/// all.
function budget(stack: Stack | null): HTMLElement | null {
  if (!stack) return null;
  const { parts, total_bytes, within, room } = stack;
  // Reserved bytes are no room for the program, or a part of the available ones.
  const isRoom = ({ kind }: Part) => ["available", "piece", "scattered"].includes(kind);
  const [available, apart] = [room.filter(isRoom), room.filter((part) => !isRoom(part))];
  const sum = (parts: Part[]) => parts.reduce((all, part) => all + part.bytes, 0);
  // Scattered bytes are no room for one piece.
  const limit = sum(available.filter(({ kind }) => kind !== "scattered"));
  const whole = Math.max(total_bytes, sum(available), 1);
  const isPiece = parts.some(({ kind }) => kind === "asked");
  const fill = ({ kind }: Part) => ({ class: kind === "padding" || kind === "scattered" ? "hatched" : "", color: `background-color:var(${COLORS[kind] ?? "--other"})` });
  const line = () => limit > 0 && el("b", { class: "capacity", style: `left:${(100 * limit) / whole}%` });
  const bar = (label: string, all: Part[]) =>
    all.length > 0 && [
      el("span", { class: "muted" }, label),
      el(
        "div",
        { class: "budget", role: "img", "aria-label": `${label}: ${all.map((part) => `${bytes(part.bytes)} ${part.name}`).join(", ")}` },
        all.map((part) => el("span", { class: fill(part).class, style: `width:${(100 * part.bytes) / whole}%;${fill(part).color}` })),
        line(),
      ),
    ];
  return el(
    "div",
    {},
    el("div", { class: "bars" }, bar(isPiece ? "asked for" : "needed", parts), bar("of it lost", within), bar(isPiece ? "free" : "available", available)),
    el(
      "p",
      { class: "keys" },
      [...parts, ...within, ...available, ...apart].map((part) => el("span", {}, el("i", { class: fill(part).class, style: fill(part).color }), `${bytes(part.bytes)} ${part.name}`, within.includes(part) && `, ${percent(part.bytes, total_bytes)}`)),
    ),
  );
}

function advice(hint: Hint, change: Summary["changes"][number] | undefined): HTMLElement {
  const frees = change?.lead ? [change.lead, change.effect].filter(Boolean).join(", ") : "";
  return el("li", {}, frees && el("div", { class: "row" }, el("strong", {}, frees[0]?.toUpperCase(), prose(frees.slice(1)))), advised(hint.sentence), code(hint), hint.kind === "audit" && el("p", {}, "Then drop the folder here."));
}

/// The text, and what was read of it marked.
function marked({ text, marks }: Quote): (string | HTMLElement)[] {
  const letters = [...text];
  let at = 0;
  const parts = marks.flatMap(([start, end]) => {
    const before = letters.slice(at, start).join("");
    at = end;
    return [before, el("mark", {}, letters.slice(start, end).join(""))];
  });
  return [...parts, letters.slice(at).join("")];
}

/// Arrays that take less are folded away, where larger ones are listed.
const SMALL = 64 << 10;
/// Up to this number, small ones are listed all the same.
const FEW = 4;

/// An array as the message lists it, and how often.
interface Listed {
  row: Allocation;
  size: number;
  count: number;
}

/// Equal rows as one, the largest first. A message about a kernel's VMEM may name its result, which lies in HBM and takes none of it.
function folded(allocations: Allocation[], verdict: string): Listed[] {
  const taken = (row: Allocation) => row.reported_bytes ?? (verdict === "kernel_memory" ? 0 : (row.physical_bytes ?? 0));
  const known = new Map<string, Listed>();
  for (const row of allocations) {
    const { shape, label, window, cause, op_name, source } = row;
    const size = taken(row);
    const key = JSON.stringify([size, shape ?? label, window, cause, op_name, source]);
    const same = known.get(key);
    if (same) same.count += 1;
    else known.set(key, { row, size, count: 1 });
  }
  return [...known.values()].sort((a, b) => b.size - a.size);
}

function allocations({ allocations, verdict }: Explanation, pictures: Pictures): HTMLElement | null {
  if (!allocations.length) return null;
  const rows = folded(allocations, verdict);
  const few = rows.filter(({ size }, at) => size >= SMALL || at < FEW);
  const picture = el("div", { class: "picture", "aria-live": "polite" });
  let drawn = "";
  const draw = async () => void (picture.innerHTML = (drawn && (await pictures(drawn).catch(() => null))) || "");
  redrawn(picture, draw);
  const show = async (shape: string) => {
    drawn = shape;
    await draw();
    intoView(picture);
  };
  const cells = ({ row, size, count }: Listed): Cell[] => {
    const { padding_bytes: padding, physical_bytes: physical, op_name: operation } = row;
    const shape = row.block ?? row.shape;
    const where = sourceLabel(row.source);
    return [
      size > 0 ? bytes(size) : "–",
      padding && physical ? el("span", { class: padding * 2 > physical && size >= SMALL ? "bad" : "" }, percent(padding, physical)) : "–",
      el(
        "div",
        {},
        count > 1 && `${grouped(count)} × `,
        shape ? el("button", { type: "button", class: "link", onclick: () => show(shape) }, el("code", {}, shape)) : (row.label ?? el("span", { class: "muted" }, "The message ends before its shape.")),
        row.block && (row.buffers ?? 1) > 1 && ` × ${row.buffers}`,
        el("div", { class: "muted" }, [where ? shortPath(where) : "", (operation ?? "").replaceAll("\\n", " "), row.window ?? "", row.cause ?? ""].filter(Boolean).map((part, at) => el("div", { title: at === 0 ? (where ?? "") : "" }, part))),
      ),
    ];
  };
  const place = el("div", {});
  const list = (shown: Listed[]) => {
    const more = rows.length - shown.length;
    fill(place, table("Table of allocations", ["bytes", "padding", "array, and where it comes from"], shown.map(cells), ["bytes", "padding"]), more > 0 && el("button", { type: "button", class: "more", onclick: () => list(rows) }, `${grouped(more)} smaller than 64 KiB`));
  };
  list(few);
  return el("section", { "aria-label": "What the message lists" }, el("h2", {}, "What the message lists"), place, picture);
}
