// A compiler's own plan without its program: what it sets aside, by kind and by allocation.

import { bytes, el, grouped, table } from "./dom";

/// As `tilewise_audit::AssignmentReport` is printed.
export interface Assignment {
  memory_spaces: { memory_space_name: string; allocations: number; argument_bytes: number; output_bytes: number; constant_bytes: number; temporary_bytes: number }[];
  allocations: { index: number; memory_space: number; kind: string; bytes: number; values: number; largest: string | null; largest_bytes: number | null }[];
  is_whole: boolean;
}

/// Allocations that are listed.
const LISTED = 40;

export function assignmentView(name: string, { memory_spaces, allocations, is_whole }: Assignment): HTMLElement {
  const largest = [...allocations].sort((a, b) => b.bytes - a.bytes).slice(0, LISTED);
  const spaces = memory_spaces.map((space) => [space.memory_space_name.toUpperCase(), ...[space.argument_bytes, space.output_bytes, space.constant_bytes, space.temporary_bytes].map(bytes), grouped(space.allocations)]);
  return el(
    "article",
    { class: "assignment" },
    el(
      "header",
      { class: "story" },
      el("h1", {}, "The compiler’s own plan ", el("span", { class: "muted" }, name)),
      el("p", { class: "lead" }, "Buffers as the compiler assigned them. Their shapes, lines and padding are in the program’s text: open that file of the dump as well."),
      !is_whole && el("p", { class: "warning" }, "The end of the file may be missing."),
    ),
    el("section", { "aria-label": "By memory" }, el("h2", {}, "By memory"), table("Table of memories", ["memory", "arguments", "results", "constants", "temporaries", "allocations"], spaces, ["arguments", "results", "constants", "temporaries", "allocations"])),
    el(
      "section",
      { "aria-label": "The largest allocations" },
      el("h2", {}, "The largest allocations"),
      table(
        "Table of allocations",
        ["bytes", "kind", "values", "the largest of them"],
        largest.map((row) => [bytes(row.bytes), row.kind, grouped(row.values), row.largest && `${row.largest}${row.largest_bytes === null ? "" : `, ${bytes(row.largest_bytes)}`}`]),
        ["bytes", "values"],
      ),
      allocations.length > largest.length && el("p", { class: "muted" }, `${grouped(allocations.length - largest.length)} smaller ones`),
    ),
  );
}
