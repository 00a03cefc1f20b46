// An out-of-memory message: how the memory is filled, what is wrong, and what to do.

import { bytes, el, percent, shortPath, sourceLabel, type Source } from "../dom";
import type { Remark } from "../program/data";
import { code, said, type Pictures } from "../program/view";

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
  bytes_saved: number | null;
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
      el("p", { class: "lead" }, verdict),
      stack && budget(stack),
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

/// The parts side by side; under them what of it is lost, and what there is.
function budget({ parts, total_bytes, within, room }: Stack): HTMLElement {
  const whole = Math.max(total_bytes, ...room.map((part) => part.bytes), 1);
  const fill = ({ kind }: Part) => ({ class: kind === "padding" ? "hatched" : "", color: `background-color:var(${COLORS[kind] ?? "--other"})` });
  const bar = (all: Part[]) =>
    all.length > 0 &&
    el(
      "div",
      { class: "budget", role: "img", "aria-label": all.map((part) => `${bytes(part.bytes)} ${part.name}`).join(", ") },
      all.map((part) => el("span", { class: fill(part).class, style: `width:${(100 * part.bytes) / whole}%;${fill(part).color}` })),
    );
  return el(
    "div",
    {},
    bar(parts),
    bar(within),
    bar(room),
    el(
      "p",
      { class: "keys" },
      [...parts, ...within, ...room].map((part) => el("span", {}, el("i", { class: fill(part).class, style: fill(part).color }), `${bytes(part.bytes)} ${part.name}`, within.includes(part) && `, ${percent(part.bytes, total_bytes)}`)),
    ),
  );
}

function advice(hint: Hint, missing: number | null): HTMLElement {
  const saved = hint.bytes_saved;
  return el(
    "li",
    {},
    saved !== null && el("div", { class: "row" }, el("strong", {}, `${hint.is_bound ? "up to " : ""}${bytes(saved)}`), missing !== null && missing > 0 && el("span", { class: "muted" }, saved >= missing ? "enough to fit, by itself" : `${percent(saved, missing)} of what is missing`)),
    el("p", {}, `${hint.sentence}.`),
    code(hint),
  );
}

function allocations({ allocations }: Explanation, pictures: Pictures): HTMLElement | null {
  if (!allocations.length) return null;
  const size = (row: Allocation) => row.reported_bytes ?? row.physical_bytes ?? 0;
  const rows = [...allocations].sort((a, b) => size(b) - size(a));
  const picture = el("div", { class: "picture", "aria-live": "polite" });
  const show = async (shape: string) => {
    picture.innerHTML = (await pictures(shape).catch(() => null)) ?? "";
    picture.scrollIntoView({ block: "nearest", behavior: "smooth" });
  };
  return el(
    "section",
    { "aria-label": "What the message lists" },
    el("h2", {}, "What the message lists"),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of allocations" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ["bytes", "padding", "array", "why", "where"].map((name, k) => el("th", { scope: "col", class: k < 2 ? "number" : "" }, name)))),
        el(
          "tbody",
          {},
          rows.map((row) => {
            const { shape, padding_bytes: padding, physical_bytes: physical } = row;
            const where = sourceLabel(row.source);
            return el(
              "tr",
              {},
              el("td", { class: "number" }, bytes(size(row))),
              el("td", { class: `number ${padding && physical && padding * 2 > physical ? "bad" : ""}` }, padding && physical ? percent(padding, physical) : "–"),
              el("td", {}, shape ? el("button", { type: "button", class: "link", onclick: () => show(shape) }, el("code", {}, shape)) : (row.label ?? "")),
              el("td", {}, row.cause ?? ""),
              el("td", { title: where ?? row.op_name ?? "" }, where ? shortPath(where) : (row.op_name ?? row.label ?? "")),
            );
          }),
        ),
      ),
    ),
    picture,
  );
}
