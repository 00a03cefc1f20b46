// A program: the story at its peak, memory over its order, what is alive at a moment, and what to change.

import { bytes, copy, el, fill, grouped, percent, shortPath, sourceLabel, tabs } from "../dom";
import { aliveAt, byOwner, colorOf, colors, hbm, names, type Advice, type Audit, type Row } from "./data";
import { timelineView, type TimelineView } from "./timeline";
import { treemap } from "./treemap";

/// A layout's picture, as SVG; null where there is none.
export type Pictures = (shape: string) => Promise<string | null>;

export interface ProgramOptions {
  pictures: Pictures;
  /// The moment to begin with, instead of the peak.
  moment?: number | undefined;
  moved?: (moment: number) => void;
  /// What stands beside the title.
  actions?: HTMLElement[];
}

/// Rows of a table before "more".
const SHOWN = 12;

export function programView(audit: Audit, options: ProgramOptions): HTMLElement {
  const { report, timeline } = audit;
  const colored = colors(audit);
  const peak = timeline?.peak_moment ?? 0;
  let moment = options.moment ?? peak;
  let way = "arrays";

  const alive = el("section", { "aria-label": "What is alive at the moment" });
  const areas = el("div", {});
  const heading = el("h2", { "aria-live": "polite" });
  const list = el("div", {});
  const detail = el("section", { class: "detail", "aria-label": "The array that is chosen", tabindex: "-1" });
  let all = false;

  function choose(row: Row) {
    detail.hidden = false;
    void showDetail(detail, row, audit, options.pictures);
  }
  function showList() {
    const rows = aliveAt(audit, moment);
    fill(areas, treemap(rows, colored, choose));
    const total = rows.reduce((sum, row) => sum + row.bytes, 0);
    const padding = rows.reduce((sum, row) => sum + row.padding, 0);
    const owner = shortPath(timeline?.owners[timeline.order_owners[moment] ?? -1] ?? "");
    const when = !timeline || moment === peak ? "At the peak" : `At step ${grouped(moment + 1)}`;
    fill(
      heading,
      `${when}: ${bytes(total)}`,
      el("span", { class: "muted" }, padding > 0 && ` ${bytes(padding)} padding`, timeline && `, while ${names(timeline)[moment] ?? ""} runs`, owner && ` (${owner})`),
    );
    fill(list, rowTable(way === "lines" ? byOwner(rows) : rows, colored, total, all, choose, () => ((all = true), showList())));
  }
  const ways = tabs("Rows", [["arrays", "Arrays"], ["lines", "By line"]], way, (id) => ((way = id), showList()));
  const others = otherTables(audit, choose);
  fill(alive, el("div", { class: "row" }, heading, ways), areas, list);

  let pending = 0;
  let view: TimelineView | undefined;
  if (timeline && timeline.moments > 0)
    view = timelineView(timeline, colored, report.hbm_limit_bytes, (at) => {
      moment = at;
      options.moved?.(at);
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(showList);
    });
  detail.hidden = true;
  showList();
  const element = el(
    "article",
    { class: "program" },
    story(audit, options.actions ?? []),
    advice(report.advice, choose, audit),
    view && el("section", { "aria-label": "Memory over the program's order" }, el("h2", {}, "Memory over the program’s order"), view.element, legend(colored, audit)),
    el("div", { class: "beside" }, alive, detail),
    others,
  );
  if (view && moment !== peak) requestAnimationFrame(() => view.show(moment));
  return element;
}

function story({ report, facts }: Audit, actions: HTMLElement[]): HTMLElement {
  const space = hbm(report);
  const results = Math.max(report.output_bytes - report.alias_bytes, 0);
  const parts: [string, number, string][] = [
    ["arguments", report.argument_bytes, "--standing"],
    [report.alias_bytes > 0 ? `results beside ${bytes(report.alias_bytes)} in donated arguments` : "results", results, "--tile-7"],
    ["temporaries", report.temporary_bytes ?? 0, "--tile-0"],
  ];
  const held = report.no_plan === null ? report.at_most_bytes : null;
  const limit = report.hbm_limit_bytes ?? facts?.hbm_bytes ?? null;
  const whole = Math.max(held ?? 0, 1);
  const padding = space?.peak_padding_bytes ?? 0;
  const source = sourceLabel(space?.peak_source ?? null);
  const verdict = report.fits === false ? el("strong", { class: "bad" }, " It does not fit.") : report.fits === true ? " It fits." : "";
  return el(
    "header",
    { class: "story" },
    el("div", { class: "row" }, el("h1", {}, report.module || "Program", " ", el("span", { class: "muted" }, report.input)), el("div", { class: "actions" }, actions)),
    held === null
      ? el("p", { class: "lead" }, `No memory plan: ${report.no_plan ?? ""}. All it defines is ${bytes(space?.physical_bytes ?? 0)}, ${bytes(space?.padding_bytes ?? 0)} of it padding.`)
      : el(
          "p",
          { class: "lead" },
          "Holds ",
          el("strong", {}, bytes(held)),
          report.partitions > 1 ? ` on each of ${report.partitions} devices` : "",
          " of HBM at most",
          limit && facts ? `, of ${bytes(limit)} that a TPU ${facts.generation} has` : "",
          ".",
          verdict,
          padding > 0 ? el("span", {}, " ", el("strong", { class: padding * 4 > held ? "bad" : "" }, `${bytes(padding)} of it is padding, ${percent(padding, held)}.`)) : " Nothing of it is padding.",
        ),
    held !== null &&
      el(
        "div",
        { class: "budget", role: "img", "aria-label": parts.map(([name, amount]) => `${bytes(amount)} ${name}`).join(", ") },
        parts.filter(([, amount]) => amount > 0).map(([, amount, color]) => el("span", { style: `width:${(100 * amount) / whole}%;background:var(${color})` })),
      ),
    held !== null &&
      el("p", { class: "keys" }, parts.filter(([, amount]) => amount > 0).map(([name, amount, color]) => el("span", {}, el("i", { style: `background:var(${color})` }), `${bytes(amount)} ${name}`))),
    source && space?.peak_instruction
      ? el("p", {}, "The peak is at ", el("code", { title: source }, shortPath(source)), ", while ", el("code", {}, space.peak_instruction), " runs.")
      : null,
    (space?.peak_fragmentation_bytes ?? 0) * 50 > (held ?? 0)
      ? el("p", {}, `${bytes(space?.peak_fragmentation_bytes ?? 0)} of the temporaries’ memory is gaps between them at that moment.`)
      : null,
    report.memory_spaces
      .filter((other) => other.memory_space !== 0 && (other.peak_live_bytes ?? 0) >= 4096)
      .map((other) => el("p", { class: "muted" }, `In ${other.memory_space_name}: ${bytes(other.peak_live_bytes ?? 0)} at most${other.peak_padding_bytes ? `, ${bytes(other.peak_padding_bytes)} of it padding` : ""}.`)),
    report.compiler_plan && report.compiler_plan.values > 0
      ? el("p", { class: "muted" }, report.compiler_plan.differences.length ? `The dump’s own plan differs in ${report.compiler_plan.differences.length} of ${report.compiler_plan.values} temporaries.` : `The dump’s own plan agrees: ${report.compiler_plan.values} temporaries lie where the compiler put them.`)
      : null,
    report.warnings.map((warning) => el("p", { class: "warning" }, warning.message)),
  );
}

/// What to change, best first, priced at the peak.
function advice(all: Advice[], choose: (row: Row) => void, audit: Audit): HTMLElement | null {
  if (!all.length) return null;
  const total = audit.report.at_most_bytes;
  return el(
    "section",
    { class: "advice", "aria-label": "What to change" },
    el("h2", {}, "What to change"),
    el(
      "ol",
      {},
      all.map((one) => {
        const saved = one.peak_bytes_saved;
        const open = () => {
          const row = aliveAt(audit, audit.timeline?.peak_moment ?? 0).find((row) => row.shape === one.shape);
          const owner = sourceLabel(one.source) ?? one.instruction;
          choose(row ?? { owner, instruction: one.instruction, shape: one.shape, role: one.target, count: 1, bytes: 0, padding: 0 });
        };
        return el(
          "li",
          {},
          el("div", { class: "row" }, saved !== null && el("strong", {}, `${one.is_bound ? "up to " : ""}${bytes(saved)}`), el("span", { class: "muted" }, saved !== null && `${percent(saved, total)} of the peak`, one.source && ` · ${shortPath(sourceLabel(one.source) ?? "")}`)),
          el("p", {}, one.sentence),
          code(one),
          one.shape && el("button", { type: "button", class: "link", onclick: open }, el("code", {}, one.shape)),
        );
      }),
    ),
  );
}

function code(one: { code: string | null; imports: string[] | string | null }): HTMLElement | null {
  if (!one.code) return null;
  const imports = Array.isArray(one.imports) ? one.imports.join("\n") : one.imports;
  const text = imports ? `${imports}\n\n${one.code}` : one.code;
  const button = el("button", { type: "button", onclick: () => copy(button, text) }, "Copy");
  return el("div", { class: "code" }, el("pre", { tabindex: "0" }, text), button);
}

function legend(colored: Map<string, number>, audit: Audit): HTMLElement {
  const swatch = (color: string, name: string, title = name) => el("span", { title }, el("i", { style: `background:var(${color})` }), name);
  return el(
    "p",
    { class: "keys" },
    (audit.timeline?.standing_bytes ?? 0) > 0 && swatch("--standing", "arguments and results"),
    [...colored].map(([owner, color]) => swatch(`--tile-${color}`, shortPath(owner), owner)),
    (audit.timeline?.owners.length ?? 0) > colored.size && swatch("--other", "other lines"),
    el("span", {}, el("i", { class: "hatched" }), "padding"),
  );
}

function rowTable(rows: Row[], colored: Map<string, number>, total: number, all: boolean, choose: (row: Row) => void, more: () => void): HTMLElement {
  const shown = all ? rows : rows.slice(0, SHOWN);
  const left = rows.length - shown.length;
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of what is alive" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ["bytes", "share", "padding", "line", "array"].map((name, k) => el("th", { scope: "col", class: k < 3 ? "number" : "" }, name)))),
      el(
        "tbody",
        {},
        shown.map((row) =>
          el(
            "tr",
            { class: row.shape ? "chooses" : "", onclick: () => row.shape && choose(row) },
            el("td", { class: "number" }, bytes(row.bytes)),
            el("td", { class: "number" }, percent(row.bytes, total)),
            el("td", { class: `number ${row.padding * 2 > row.bytes ? "bad" : ""}` }, row.padding > 0 ? percent(row.padding, row.bytes) : "–"),
            el("td", { title: row.owner }, el("i", { style: `background:var(${colorOf(row, colored)})` }), shortPath(row.owner), row.role !== "temporary" && el("span", { class: "muted" }, ` ${row.role}`)),
            el("td", {}, row.count > 1 && `${row.count} × `, row.shape ? el("button", { type: "button", class: "link" }, el("code", {}, row.shape)) : el("span", { class: "muted" }, "several")),
          ),
        ),
      ),
    ),
    left > 0 && el("button", { type: "button", onclick: more }, `${grouped(left)} more`),
  );
}

/// Tables of the whole program: copies by line, buffers by padding.
function otherTables({ report, copies }: Audit, choose: (row: Row) => void): HTMLElement | null {
  if (!copies.count && !report.buffers.length) return null;
  return el(
    "div",
    {},
    copies.count > 0 &&
      el(
        "details",
        {},
        el("summary", {}, `Copies by line (${grouped(copies.count)})`),
        table(
          ["moves", "copies", "what for", "line", "why"],
          copies.lines.map(({ owner, copies, moved_bytes, is_lower_bound, most }) => [
            `${bytes(moved_bytes)}${is_lower_bound ? "+" : ""}`,
            grouped(copies),
            most.class,
            shortPath(owner),
            el("span", {}, most.why, most.fix && el("strong", {}, `. To be rid of it: ${most.fix.sentence}`)),
          ]),
        ),
      ),
    report.buffers.length > 0 &&
      el(
        "details",
        {},
        el("summary", {}, `Buffers with the most padding (${report.buffers.length})`),
        table(
          ["padding", "bytes", "array", "why", "line"],
          report.buffers.map((row) => {
            const owner = sourceLabel(row.source) ?? row.op_name ?? row.instruction;
            const open = () => choose({ owner, instruction: row.instruction, shape: row.shape, role: row.opcode === "parameter" ? "argument" : "temporary", count: 1, bytes: row.physical_bytes, padding: row.padding_bytes });
            const shape = el("button", { type: "button", class: "link", onclick: open }, el("code", {}, row.shape));
            return [bytes(row.padding_bytes), bytes(row.physical_bytes), shape, row.cause ?? "", shortPath(owner)];
          }),
        ),
      ),
  );
}

function table(names: string[], rows: (string | HTMLElement)[][]): HTMLElement {
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": names.join(", ") },
    el("table", {}, el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell)))))),
  );
}

async function showDetail(panel: HTMLElement, row: Row, { report }: Audit, pictures: Pictures): Promise<void> {
  const fixes = report.advice.filter((one) => one.shape === row.shape || one.instruction === row.instruction);
  const buffer = report.buffers.find((buffer) => buffer.instruction === row.instruction) ?? report.buffers.find((buffer) => buffer.shape === row.shape);
  const picture = el("div", { class: "picture" });
  const close = el("button", { type: "button", "aria-label": "Close", onclick: () => (panel.hidden = true) }, "×");
  fill(
    panel,
    el("div", { class: "row" }, el("h2", {}, el("code", {}, row.shape)), close),
    el("p", {}, `${row.count > 1 ? `${row.count} arrays, ` : ""}${bytes(row.bytes)}, `, row.padding > 0 ? el("strong", {}, `${bytes(row.padding)} padding`) : "no padding", ` · ${row.role} of `, el("code", { title: row.owner }, shortPath(row.owner)), row.instruction && ` (${row.instruction})`),
    buffer?.cause && el("p", {}, `${buffer.cause[0]?.toUpperCase()}${buffer.cause.slice(1)}.`),
    fixes.length
      ? fixes.map((one) => el("div", { class: "fix" }, el("p", {}, el("strong", {}, one.peak_bytes_saved !== null ? `${one.is_bound ? "Up to " : ""}${bytes(one.peak_bytes_saved)} at the peak: ` : ""), one.sentence), code(one)))
      : el("p", { class: "muted" }, buffer?.fix ? `${buffer.fix}` : row.padding > 0 ? "No change of this array alone lowers the peak." : ""),
    picture,
  );
  panel.scrollIntoView({ block: "nearest", behavior: "smooth" });
  const svg = await pictures(row.shape).catch(() => null);
  if (svg) picture.innerHTML = svg;
}
