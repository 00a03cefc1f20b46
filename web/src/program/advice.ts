// What to change: the first of it in the story, all of it below.

import { el, shortPath, sourceLabel } from "../dom";
import { advised, clauses, code, prose, said } from "../said";
import type { Audit, Recommended } from "./data";
import { aliveAt, arrays, type Row } from "./rows";

/// What the summary recommends; of a report alone, its advice.
export function recommended({ report, summary }: Audit): Recommended[] {
  return summary?.recommendations ?? report.advice.map((one) => ({ lead: "", ...one }));
}

/// The best change in a line, and what it leaves. Where it fits, nothing has to change.
export function firstOf(audit: Audit): HTMLElement | null {
  const [first] = recommended(audit);
  const remedy = audit.summary?.remedy;
  if (!first) return null;
  const label = audit.summary?.judgement?.tone === "strong" ? "To hold less: " : "First: ";
  return el("p", { class: "first" }, el("strong", {}, label), prose(`${clauses(first.sentence)[0]}. `), first.lead && el("span", { class: "muted" }, `${first.lead}. `), remedy && said(remedy));
}

/// What to change, best first, priced at the peak.
export function advice(audit: Audit, choose: (row: Row) => void): HTMLElement | null {
  const all = recommended(audit);
  if (!all.length) return null;
  return el(
    "section",
    { class: "advice", "aria-label": "What to change" },
    el("h2", {}, "What to change"),
    el(
      "ol",
      {},
      all.map((one) => {
        const shape = one.shape ?? "";
        const open = () => {
          const rows = arrays(aliveAt(audit, audit.timeline, audit.timeline?.peak_moment ?? 0)).filter((row) => row.shape === shape);
          const owner = sourceLabel(one.source) ?? one.instruction ?? "";
          const row = rows.find((row) => row.instruction === one.instruction || owner.startsWith(row.owner));
          choose(row ?? bare({ owner, instruction: one.instruction ?? "", shape, role: one.target }));
        };
        return el(
          "li",
          {},
          el("div", { class: "row" }, one.lead && el("strong", {}, one.lead), el("span", { class: "muted" }, shortPath(sourceLabel(one.source) ?? ""))),
          advised(one.sentence),
          code(one),
          shape && el("button", { type: "button", class: "link", onclick: open }, el("code", {}, shape)),
        );
      }),
    ),
    audit.summary?.remedy && el("p", {}, said(audit.summary.remedy)),
  );
}

/// A row of what is in no timeline.
export function bare(known: Partial<Row> & { owner: string; shape: string }): Row {
  return { name: shortPath(known.owner), path: "", module: "", instruction: "", role: "temporary", count: 1, bytes: 0, padding: 0, pieces: [], ...known };
}

/// What fills the memory, where no recommendation frees much of it.
export function contents({ summary }: Audit): HTMLElement | null {
  const all = summary?.contents ?? [];
  if (!all.length) return null;
  return el("section", { "aria-label": "What fills the memory" }, el("h2", {}, "What fills the memory"), el("ul", {}, all.map((remark) => el("li", {}, said(remark)))));
}
