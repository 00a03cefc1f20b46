// An out-of-memory message: how the memory is filled, what is wrong, and what to do.

import { bytes, el, percent, redrawn, shortPath, sourceLabel, table, type Source } from "../dom";
import type { Remark } from "../program/data";
import { code, prose, said, type Pictures } from "../said";

interface Part {
  kind: string;
  name: string;
  bytes: number;
}

/// What fills the memory: parts side by side, what of them is lost, and what there is.
interface Stack {
  parts: Part[];
  total_bytes: number;
  within: Part[];
  room: Part[];
}

/// What is said of a message first, as `tilewise_report::MessageSummary` is printed.
interface Summary {
  headline: string;
  verdict: string;
  stack: Stack | null;
  shortfall: Remark | null;
  notes: Remark[];
}

interface Hint {
  target: string;
  shape: string | null;
  peak_bytes_saved: number | null;
  is_bound: boolean;
  sentence: string;
  code: string | null;
  imports: string | null;
}

interface Allocation {
  section: string;
  label: string | null;
  shape: string | null;
  reported_bytes: number | null;
  physical_bytes: number | null;
  padding_bytes: number | null;
  cause: string | null;
  op_name: string | null;
  source: Source | null;
}

/// What `tilewise explain --format json` prints.
export interface Explanation {
  verdict: string;
  module: string | null;
  used_bytes: number | null;
  limit_bytes: number | null;
  exceeded_bytes: number | null;
  budget: { missing_bytes: number | null };
  advice: Hint[];
  allocations: Allocation[];
}

/// That, and what is said first.
export interface Explained {
  explanation: Explanation;
  summary: Summary;
}

export function messageView({ explanation, summary }: Explained, text: string, pictures: Pictures): HTMLElement {
  const missing = explanation.exceeded_bytes ?? explanation.budget.missing_bytes;
  const { headline, verdict, stack, shortfall, notes } = summary;
  return el(
    "article",
    { class: "message", "data-verdict": explanation.verdict },
    el(
      "header",
      { class: "story" },
      el("h1", {}, headline, " ", el("span", { class: "muted" }, explanation.module ?? "")),
      el("p", { class: "lead" }, prose(verdict)),
      budget(stack ?? whole(explanation)),
      notes.map((note) => el("p", {}, said(note))),
    ),
    explanation.advice.length > 0 && el("section", { class: "advice", "aria-label": "What to do" }, el("h2", {}, "What to do"), el("ol", {}, explanation.advice.map((hint) => advice(hint, missing))), shortfall && el("p", {}, said(shortfall))),
    allocations(explanation, pictures),
    text && el("details", {}, el("summary", {}, "The message"), el("pre", { class: "scroll", tabindex: "0" }, text)),
  );
}

const COLORS: Record<string, string> = {
  arguments: "--resident",
  results: "--tile-7",
  temporaries: "--tile-0",
  others: "--tile-3",
  program: "--tile-2",
  fragmentation: "--tile-4",
  padding: "--raised",
  available: "--muted",
};

/// What is needed in one piece, where the message tells of no parts.
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
  // What is reserved is no room for the program, or a part of what is available.
  const [available, apart] = [room.filter((part) => part.kind === "available"), room.filter((part) => part.kind !== "available")];
  const limit = available.reduce((sum, part) => sum + part.bytes, 0);
  const whole = Math.max(total_bytes, limit, 1);
  const fill = ({ kind }: Part) => ({ class: kind === "padding" ? "hatched" : "", color: `background-color:var(${COLORS[kind] ?? "--other"})` });
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
    el("div", { class: "bars" }, bar("needed", parts), bar("of it lost", within), bar("available", available)),
    el(
      "p",
      { class: "keys" },
      [...parts, ...within, ...available, ...apart].map((part) => el("span", {}, el("i", { class: fill(part).class, style: fill(part).color }), `${bytes(part.bytes)} ${part.name}`, within.includes(part) && `, ${percent(part.bytes, total_bytes)}`)),
    ),
  );
}

function advice(hint: Hint, missing: number | null): HTMLElement {
  const saved = hint.peak_bytes_saved;
  return el(
    "li",
    {},
    saved !== null && el("div", { class: "row" }, el("strong", {}, `${hint.is_bound ? "up to " : ""}${bytes(saved)}`), missing !== null && missing > 0 && el("span", { class: "muted" }, saved >= missing ? "enough to fit, by itself" : `${percent(saved, missing)} of what is missing`)),
    el("p", {}, prose(`${hint.sentence}.`)),
    code(hint),
  );
}

function allocations({ allocations }: Explanation, pictures: Pictures): HTMLElement | null {
  if (!allocations.length) return null;
  const size = (row: Allocation) => row.reported_bytes ?? row.physical_bytes ?? 0;
  const rows = [...allocations].sort((a, b) => size(b) - size(a));
  const picture = el("div", { class: "picture", "aria-live": "polite" });
  let drawn = "";
  const draw = async () => void (picture.innerHTML = (drawn && (await pictures(drawn).catch(() => null))) || "");
  redrawn(picture, draw);
  const show = async (shape: string) => {
    drawn = shape;
    await draw();
    picture.scrollIntoView({ block: "nearest", behavior: "smooth" });
  };
  return el(
    "section",
    { "aria-label": "What the message lists" },
    el("h2", {}, "What the message lists"),
    table(
      "Table of allocations",
      ["bytes", "padding", "array", "why", "where"],
      rows.map((row) => {
        const { shape, padding_bytes: padding, physical_bytes: physical } = row;
        const where = sourceLabel(row.source);
        return [
          bytes(size(row)),
          padding && physical ? el("span", { class: padding * 2 > physical ? "bad" : "" }, percent(padding, physical)) : "–",
          shape ? el("button", { type: "button", class: "link", onclick: () => show(shape) }, el("code", {}, shape)) : row.label,
          row.cause,
          el("span", { title: where ?? row.op_name ?? "" }, where ? shortPath(where) : (row.op_name ?? row.label)),
        ];
      }),
      ["bytes", "padding"],
    ),
    picture,
  );
}
