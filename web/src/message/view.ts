// An out-of-memory message: how the memory is filled, what is the matter, and what to do.

import { bytes, copy, el, percent, shortPath, sourceLabel, type Source } from "../dom";
import type { Pictures } from "../program/view";

interface Budget {
  capacity_bytes: number | null;
  reserved_bytes: number | null;
  others_bytes: number | null;
  argument_bytes: number | null;
  output_bytes: number | null;
  temporary_bytes: number | null;
  program_bytes: number | null;
  padding_bytes: number | null;
  fragmentation_bytes: number | null;
  missing_bytes: number | null;
}

interface Hint {
  target: string;
  shape: string | null;
  bytes_saved: number | null;
  is_bound: boolean;
  sentence: string;
  code: string | null;
  imports: string[] | string | null;
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
  verdict_sentence?: string;
  module: string | null;
  memory_space_name: string | null;
  used_bytes: number | null;
  limit_bytes: number | null;
  exceeded_bytes: number | null;
  padding_bytes: number;
  budget: Budget;
  advice: Hint[];
  truncated: boolean;
  allocations: Allocation[];
}

/// What each verdict means.
const VERDICTS: Record<string, string> = {
  padding: "Padding is the matter: without it, it would fit, or most of what is used is padding.",
  arguments: "The arguments alone do not fit.",
  size: "It is too large: little of it is padding.",
  fragmentation: "Enough is free, but not in one piece.",
  reservation: "Others hold the memory: the program found too little left when it ran.",
  kernel_memory: "One kernel asks for more than the core’s own memory has.",
  spills: "The compiler ran out of registers, and their spill slots fill the core’s own memory.",
  not_tpu: "This is no message of a TPU.",
  unknown: "The message does not tell what fills the memory.",
};

export function messageView(explained: Explanation, text: string, pictures: Pictures): HTMLElement {
  const space = (explained.memory_space_name ?? "memory").toUpperCase();
  const [used, limit, missing] = [explained.used_bytes, explained.limit_bytes, explained.exceeded_bytes ?? explained.budget.missing_bytes];
  const title =
    used !== null && limit !== null ? `${bytes(used)} of ${bytes(limit)} of ${space}` : `Out of memory in ${space}`;
  return el(
    "article",
    { class: "message", "data-verdict": explained.verdict },
    el(
      "header",
      { class: "story" },
      el("h1", {}, title, " ", el("span", { class: "muted" }, explained.module ?? "")),
      el(
        "p",
        { class: "lead" },
        el("strong", {}, VERDICTS[explained.verdict] ?? explained.verdict),
        missing !== null && missing > 0 && ` ${bytes(missing)} are missing.`,
        explained.padding_bytes > 0 && ` ${bytes(explained.padding_bytes)} of what is listed is padding.`,
      ),
      budget(explained),
      explained.truncated && el("p", { class: "muted" }, "The message is cut off: only what it contains is explained."),
    ),
    explained.advice.length > 0 && el("section", { class: "advice", "aria-label": "What to do" }, el("h2", {}, "What to do"), el("ol", {}, explained.advice.map((hint) => advice(hint, missing)))),
    allocations(explained, pictures),
    el("details", {}, el("summary", {}, "The message"), el("pre", { class: "scroll", tabindex: "0" }, text)),
  );
}

/// The parts of the memory, stacked against what there is.
function budget({ budget, used_bytes, limit_bytes, padding_bytes }: Explanation): HTMLElement | null {
  const capacity = budget.capacity_bytes ?? limit_bytes;
  const padding = budget.padding_bytes ?? padding_bytes;
  const temporaries = budget.temporary_bytes;
  const all: [string, number | null, string, boolean?][] = [
    ["reserved", budget.reserved_bytes, "--other"],
    ["other programs and buffers", budget.others_bytes, "--tile-3"],
    ["program", budget.program_bytes, "--tile-2"],
    ["arguments", budget.argument_bytes, "--standing"],
    ["results", budget.output_bytes, "--tile-7"],
    ["temporaries", temporaries, "--tile-0"],
    ["fragmentation", budget.fragmentation_bytes, "--tile-4"],
  ];
  let parts = all.filter(([, amount]) => (amount ?? 0) > 0).map(([name, amount, color]) => ({ name, amount: amount ?? 0, color }));
  if (!parts.length && used_bytes) parts = [{ name: "used", amount: used_bytes, color: "--tile-0" }];
  if (!parts.length) return null;
  const sum = parts.reduce((sum, part) => sum + part.amount, 0);
  const whole = Math.max(sum, capacity ?? 0);
  // Where the padding lies is not said: it is a bar of its own under the parts.
  const bar = (label: string, spans: HTMLElement[]) => el("div", { class: "budget", role: "img", "aria-label": label }, spans);
  const width = (amount: number) => `width:${(100 * Math.min(amount, whole)) / whole}%`;
  return el(
    "div",
    {},
    bar(
      parts.map((part) => `${bytes(part.amount)} ${part.name}`).join(", "),
      parts.map((part) => el("span", { style: `${width(part.amount)};background:var(${part.color})` })),
    ),
    padding > 0 && bar(`${bytes(padding)} of it padding`, [el("span", { class: "hatched", style: `${width(padding)};background-color:var(--raised)` })]),
    !!capacity && bar(`${bytes(capacity)} there are`, [el("span", { style: `${width(capacity)};background:var(--muted)` })]),
    el(
      "p",
      { class: "keys" },
      parts.map((part) => el("span", {}, el("i", { style: `background:var(${part.color})` }), `${bytes(part.amount)} ${part.name}`)),
      padding > 0 && el("span", {}, el("i", { class: "hatched" }), `${bytes(padding)} padding, ${percent(padding, sum)}`),
      !!capacity && el("span", {}, el("i", { style: "background:var(--muted)" }), `${bytes(capacity)} there are`),
    ),
  );
}

function advice(hint: Hint, missing: number | null): HTMLElement {
  const saved = hint.bytes_saved;
  const imports = Array.isArray(hint.imports) ? hint.imports.join("\n") : hint.imports;
  const text = hint.code && (imports ? `${imports}\n\n${hint.code}` : hint.code);
  const button = el("button", { type: "button", onclick: () => text && copy(button, text) }, "Copy");
  return el(
    "li",
    {},
    saved !== null && el("div", { class: "row" }, el("strong", {}, `${hint.is_bound ? "up to " : ""}${bytes(saved)}`), missing !== null && missing > 0 && el("span", { class: "muted" }, saved >= missing ? "enough to fit, by itself" : `${percent(saved, missing)} of what is missing`)),
    el("p", {}, hint.sentence),
    text && el("div", { class: "code" }, el("pre", { tabindex: "0" }, text), button),
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
