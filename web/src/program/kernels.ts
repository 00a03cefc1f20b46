// Pallas kernels: which of their operands and results are copied, by whom that is forced, and what they take of VMEM.

import { bytes, el, grouped, percent, shortPath, sourceLabel, table, type Cell } from "../dom";
import { code, prose } from "../said";
import type { Kernel, KernelArray } from "./data";

/// Rows that are listed.
const LISTED = 12;

const FORCED: Record<string, string> = {
  kernel: "the kernel’s row-major rule",
  interface: "the program’s interface",
  loop: "a loop’s carry",
  branch: "a branch of a conditional",
  donation: "an array that isn’t donated",
};

const who = (kernel: Kernel) => shortPath(sourceLabel(kernel.source) ?? kernel.op_name ?? kernel.instruction);

interface Copied {
  kernel: Kernel;
  array: KernelArray;
  /// `operand 1`, and who makes or reads it.
  name: string;
  other: string;
  calls: number;
  moved: number;
}

/// The copies at kernels, alike calls as one, the most first.
function copied(kernels: Kernel[]): Copied[] {
  const alike = new Map<string, Copied>();
  for (const kernel of kernels) {
    // An operand's path is told from the kernel backwards.
    const operands = kernel.operands.map((operand) => ({ array: { ...operand, between: [...operand.between].reverse() }, name: `operand ${operand.index}`, other: `from ${operand.producer}` }));
    const results = kernel.results.map((array) => ({ array, name: `result ${array.index}`, other: `for ${array.user}` }));
    for (const { array, name, other } of [...operands, ...results]) {
      if (array.copied_bytes === 0) continue;
      const key = JSON.stringify([who(kernel), name, array.between.map(({ from, to }) => [from, to])]);
      const known = alike.get(key);
      if (known) [known.calls, known.moved] = [known.calls + 1, known.moved + array.copied_bytes];
      else alike.set(key, { kernel, array, name, other, calls: 1, moved: array.copied_bytes });
    }
  }
  return [...alike.values()].sort((a, b) => b.moved - a.moved);
}

function boundary({ kernel, array, name, other, calls, moved }: Copied): Cell[] {
  const { between, forced_by: by, remedy } = array;
  const [first, last] = [between[0], between.at(-1)];
  return [
    bytes(moved),
    grouped(calls),
    el("span", { title: kernel.instruction }, `${who(kernel)}, ${name}`),
    el(
      "div",
      {},
      first && last && el("div", {}, el("code", {}, first.from), " → ", el("code", {}, last.to)),
      el("div", { class: "muted" }, `${between.map(({ opcode }) => opcode).join(", ")} ${other}${by ? `; forced by ${FORCED[by] ?? by}` : ""}`),
      remedy && el("div", { class: "fix" }, el("p", {}, prose(`${remedy.sentence}.`)), code({ code: remedy.code, imports: null })),
    ),
  ];
}

function vmem({ used_bytes: used, limit_bytes: limit, cap_bytes: cap, ...kernel }: Kernel): Cell[] {
  const share = used !== null && limit ? percent(used, limit) : "–";
  return [used === null ? "–" : bytes(used), limit === null ? "–" : bytes(limit), share, cap === null ? "–" : bytes(cap), who({ ...kernel, used_bytes: used, limit_bytes: limit, cap_bytes: cap })];
}

export function kernelTables(kernels: Kernel[]): HTMLElement | null {
  if (!kernels.length) return null;
  const rows = copied(kernels);
  const budgets = kernels.filter((kernel) => kernel.used_bytes !== null).sort((a, b) => (b.used_bytes ?? 0) - (a.used_bytes ?? 0));
  const left = (count: number) => count > LISTED && el("p", { class: "muted" }, `${grouped(count - LISTED)} more: Save JSON has all.`);
  return el(
    "div",
    {},
    rows.length > 0 &&
      el(
        "details",
        { class: "kernels", open: true },
        el("summary", {}, `Copies at kernels (${grouped(rows.length)})`),
        table("Table of copies at kernels", ["moves", "calls", "kernel", "what lies between"], rows.slice(0, LISTED).map(boundary), ["moves", "calls"]),
        left(rows.length),
      ),
    budgets.length > 0 &&
      el(
        "details",
        {},
        el("summary", {}, `VMEM of kernels (${grouped(budgets.length)})`),
        table("Table of kernels' VMEM", ["takes", "limit", "share", "limit may be", "kernel"], budgets.slice(0, LISTED).map(vmem), ["takes", "limit", "share", "limit may be"]),
        left(budgets.length),
      ),
  );
}
