// Advice: the first change in the story, all of them below.

import { el, shortPath, sourceLabel } from "../dom";
import { advised, clauses, code, prose } from "../said";
import type { Audit, PlannedChange } from "./data";
import { aliveAt, arrays, type Row } from "./rows";

/// The changes that the summary plans; of a report alone, its advice.
export function planned({ report, summary }: Audit): PlannedChange[] {
  const bare = { lead: "", bytes_after: 0, fits: null, seconds_after: null, effect: "", plain_code: null, caveat: null, place: "", edit: null };
  return summary?.changes ?? report.advice.map((one) => ({ ...bare, ...one, do: clauses(one.sentence)[0] }));
}

/// The gentlest change that is enough, with its code; where nothing needs to change, that.
export function firstOf(audit: Audit): HTMLElement | null {
  const [first] = planned(audit);
  if (!first || audit.summary?.headline.is_comfortable) return null;
  const { lead, effect, plain_code: plain, caveat, place, edit } = first;
  return el(
    "div",
    { class: "first" },
    el("p", {}, el("strong", {}, audit.summary?.headline.verdict === "fits" ? "Smaller: " : "Change: ", prose(first.do)), " ", lead && el("span", {}, `${lead}, ${effect}`)),
    caveat && el("p", { class: "muted" }, prose(caveat)),
    edit ? el("p", { class: "muted" }, `${shortPath(edit.file)}:${edit.line}`) : place && el("p", { class: "muted" }, prose(`at ${place}`)),
    edit ? diff(edit) : code({ code: plain ?? first.code, imports: plain ? null : first.imports }),
  );
}

/// A line and what it becomes; a decorator comes above the line that stays.
function diff({ before, after }: { before: string; after: string }): HTMLElement {
  const [above, stays] = after.split("\n");
  const lines = stays ? [el("ins", {}, `+ ${above}`), `\n  ${stays}`] : [el("del", {}, `- ${before}`), "\n", el("ins", {}, `+ ${after}`)];
  return el("pre", { class: "scroll", tabindex: "0" }, ...lines);
}

/// The changes in full, in the order in which to try them, and those without a price; folded where none is needed.
export function advice(audit: Audit, choose: (row: Row) => void): HTMLElement | null {
  const [all, remedies] = [planned(audit), audit.summary?.remedies ?? []];
  if (!all.length && !remedies.length) return null;
  const list = el(
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
        el("div", { class: "row" }, one.lead && el("strong", {}, one.lead), el("span", { class: "muted" }, one.effect), el("span", { class: "muted" }, shortPath(sourceLabel(one.source) ?? ""))),
        advised(one.sentence),
        code(one),
        shape && el("button", { type: "button", class: "link", onclick: open }, el("code", {}, shape)),
      );
    }),
  );
  const isFolded = audit.summary?.headline.is_comfortable;
  const lists = [all.length > 0 && list, remedies.length > 0 && el("ul", {}, remedies.map((remedy) => el("li", {}, prose(`${remedy}.`))))];
  const title = all.length ? "The changes in full" : "To make it smaller";
  const body = isFolded ? el("details", {}, el("summary", {}, "Make it smaller: optional"), lists) : [el("h2", {}, title), ...lists];
  return el("section", { class: "advice", "aria-label": "What to change" }, body);
}

/// A row of what is in no timeline.
export function bare(known: Partial<Row> & { owner: string; shape: string }): Row {
  return { name: shortPath(known.owner), path: "", module: "", instruction: "", role: "temporary", count: 1, bytes: 0, padding: 0, pieces: [], ...known };
}
