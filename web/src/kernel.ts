// Pallas kernels by their descriptions: whether one fits, what frees memory, its VMEM to scale, and other generations.

import { bytes, el, fill, table, tabs } from "./dom";
import { prose } from "./said";

/// As `docs/json.md` has it, of what is shown.
interface Budget {
  name: string | null;
  tpu: string;
  windows: { operand: string; shape: string; block: (number | null)[]; padded_block: number[] | null; padding_bytes: number; buffers: number; bytes: number; unsupported: string | null }[];
  prefetched: Allocation[];
  scratch: Allocation[];
  vmem_bytes: number;
  smem_bytes: number;
  limit_bytes: number | null;
  cap_bytes: number | null;
  verdict: string | null;
  sentence: string;
  remedy: string | null;
  svg: string;
}

interface Allocation {
  operand: string;
  shape: string | null;
  memory_space: string;
  padded_block: number[] | null;
  bytes: number;
}

/// A kernel on each generation, and the one that its text names.
export interface Kernel {
  tpu: string | null;
  budgets: Budget[];
}

const size = (count: number | null) => (count === null ? "–" : bytes(count));
const listed = (bounds: (number | null)[] | null) => bounds?.map((bound) => bound ?? "–").join(" × ") ?? null;

/// How sure it is that a kernel is compiled.
function judged({ verdict, windows }: Budget): "good" | "doubt" | "bad" {
  if (verdict === "does_not_fit" || windows.some(({ unsupported }) => unsupported)) return "bad";
  return verdict === "probably_fits" ? "good" : "doubt";
}

export function kernelView(name: string, kernels: Kernel[]): HTMLElement {
  return el("article", { class: "kernel" }, kernels.map((kernel) => kernelSection(name, kernel)));
}

function kernelSection(file: string, { tpu, budgets }: Kernel): HTMLElement {
  const shown = el("div", {});
  const show = (chosen: string) => fill(shown, ...budgetParts(file, budgets.find((budget) => budget.tpu === chosen)!));
  const first = tpu && budgets.some((budget) => budget.tpu === tpu) ? tpu : budgets.at(-1)!.tpu;
  show(first);
  return el(
    "section",
    {},
    el("p", { class: "row" }, tabs("TPU", budgets.map((budget) => [budget.tpu, budget.tpu] as const), first, show)),
    shown,
    el("h2", {}, "On each TPU"),
    table(
      "Table of TPUs",
      ["TPU", "VMEM", "limit", "at most", "SMEM", "verdict"],
      budgets.map((budget) => [budget.tpu, bytes(budget.vmem_bytes), size(budget.limit_bytes), size(budget.cap_bytes), bytes(budget.smem_bytes), (budget.verdict ?? "unknown").replaceAll("_", " ")]),
      ["VMEM", "limit", "at most", "SMEM"],
    ),
  );
}

function budgetParts(file: string, budget: Budget): HTMLElement[] {
  const picture = el("div", { class: "picture" });
  picture.innerHTML = budget.svg;
  const refused = budget.windows.filter(({ unsupported }) => unsupported);
  const windows = budget.windows.map((row) => [row.operand, el("code", {}, row.shape), listed(row.block), listed(row.padded_block), `${row.buffers}`, bytes(row.bytes), row.padding_bytes ? bytes(row.padding_bytes * row.buffers) : "–"]);
  const others = [...budget.prefetched, ...budget.scratch].map((row) => [row.operand, row.shape && el("code", {}, row.shape), row.memory_space, listed(row.padded_block), "1", bytes(row.bytes), "–"]);
  return [
    el(
      "header",
      { class: "story" },
      el("h1", { "aria-live": "polite" }, el("span", { class: `judgement ${judged(budget)}` }, prose(`${budget.sentence}.`)), " ", el("small", { class: "muted" }, budget.name ?? file)),
      refused.map((row) => el("p", { class: "lead" }, `${row.operand}: `, prose(`${row.unsupported}.`))),
      budget.remedy && el("p", { class: "lead" }, prose(`${budget.remedy}.`)),
    ),
    picture,
    el("h2", {}, "Windows and scratch"),
    table("Table of windows and scratch", ["operand", "shape", "block", "padded", "buffers", "takes", "padding"], [...windows, ...others], ["buffers", "takes", "padding"]),
  ];
}
