// A program: the story at its peak, memory over its order, what is alive at a moment, and what to change.

import { bytes, copy, el, fill, grouped, percent, redrawn, shortPath, sourceLabel, tabs } from "../dom";
import { aliveAt, byOwner, colorOf, colors, names, type Audit, type Recommended, type Remark, type Row } from "./data";
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
    advice(audit, choose),
    contents(audit),
    view && el("section", { "aria-label": "Memory over the program's order" }, el("h2", {}, "Memory over the program’s order"), view.element, legend(colored, audit)),
    el("div", { class: "beside" }, alive, detail),
    others,
  );
  if (view && moment !== peak) requestAnimationFrame(() => view.show(moment));
  return element;
}

const COLORS = { arguments: "--resident", results: "--tile-7", constants: "--tile-2", temporaries: "--tile-0" };

function story({ report, summary }: Audit, actions: HTMLElement[]): HTMLElement {
  const parts = summary?.parts.filter((part) => part.bytes > 0) ?? [];
  const whole = parts.reduce((sum, part) => sum + part.bytes, 0);
  return el(
    "header",
    { class: "story" },
    el("div", { class: "row" }, el("h1", {}, summary?.title ?? report.module, " ", el("span", { class: "muted" }, summary?.origin ?? report.input)), el("div", { class: "actions" }, actions)),
    el("p", { class: "lead" }, el("strong", {}, summary?.headline ?? `${bytes(report.at_most_bytes)} of HBM`), ". ", summary?.verdict && said(summary.verdict), summary && el("span", { class: "muted" }, ` ${summary.machine}`)),
    parts.length > 0 && [
      el("div", { class: "budget", role: "img", "aria-label": parts.map((part) => part.words).join(", ") }, parts.map((part) => el("span", { style: `width:${(100 * part.bytes) / whole}%;background:var(${COLORS[part.kind]})` }))),
      el("p", { class: "keys" }, parts.map((part) => el("span", {}, el("i", { style: `background:var(${COLORS[part.kind]})` }), part.words))),
    ],
    summary && [...summary.peak, ...summary.notes].map((remark) => el("p", {}, said(remark))),
    report.warnings.map((warning) => el("p", { class: "warning" }, warning.message)),
  );
}

/// A sentence, as loud as it is.
export function said({ words, tone }: Remark): HTMLElement {
  const classes = { faint: "muted", plain: "", strong: "", warning: "bad", bad: "bad" };
  return el(tone === "plain" || tone === "faint" ? "span" : "strong", { class: classes[tone] }, words);
}

/// What to change, best first, priced at the peak.
function advice(audit: Audit, choose: (row: Row) => void): HTMLElement | null {
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
          const row = aliveAt(audit, audit.timeline?.peak_moment ?? 0).find((row) => row.shape === shape);
          const owner = sourceLabel(one.source) ?? one.instruction ?? "";
          choose(row ?? { owner, instruction: one.instruction ?? "", shape, role: one.target, count: 1, bytes: 0, padding: 0 });
        };
        return el(
          "li",
          {},
          el("div", { class: "row" }, one.lead && el("strong", {}, one.lead), el("span", { class: "muted" }, shortPath(sourceLabel(one.source) ?? ""))),
          el("p", {}, `${one.sentence}.`),
          code(one),
          shape && el("button", { type: "button", class: "link", onclick: open }, el("code", {}, shape)),
        );
      }),
    ),
    audit.summary?.remedy && el("p", {}, said(audit.summary.remedy)),
  );
}

/// What fills the memory, where no recommendation frees much of it.
function contents({ summary }: Audit): HTMLElement | null {
  const all = summary?.contents ?? [];
  if (!all.length) return null;
  return el("section", { "aria-label": "What fills the memory" }, el("h2", {}, "What fills the memory"), el("ul", {}, all.map((remark) => el("li", {}, said(remark)))));
}

/// What the summary recommends; of a report alone, its advice.
function recommended({ report, summary }: Audit): Recommended[] {
  return summary?.recommendations ?? report.advice.map((one) => ({ lead: "", ...one }));
}

export function code({ code, imports }: { code: string | null; imports: string | null }): HTMLElement | null {
  if (!code) return null;
  const text = imports ? `${imports}\n\n${code}` : code;
  const button = el("button", { type: "button", onclick: () => copy(button, text) }, "Copy");
  return el("div", { class: "code" }, el("pre", { tabindex: "0" }, text), button);
}

function legend(colored: Map<string, number>, audit: Audit): HTMLElement {
  const swatch = (color: string, name: string, title = name) => el("span", { title }, el("i", { style: `background:var(${color})` }), name);
  return el(
    "p",
    { class: "keys" },
    (audit.timeline?.resident_bytes ?? 0) > 0 && swatch("--resident", "arguments and results"),
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
function otherTables({ report, summary }: Audit, choose: (row: Row) => void): HTMLElement | null {
  const copies = summary?.copies;
  if (!copies && !report.buffers.length) return null;
  return el(
    "div",
    {},
    copies &&
      el(
        "details",
        {},
        el("summary", {}, `Copies by line (${grouped(copies.copies)})`),
        table(
          ["moves", "copies", "what for", "line", "why"],
          copies.lines.map((line) => [
            `${bytes(line.moved_bytes)}${line.is_lower_bound ? "+" : ""}`,
            grouped(line.copies),
            line.purpose,
            shortPath(sourceLabel(line.source) ?? line.instruction),
            line.why ?? "",
          ]),
        ),
        copies.needless.length > 0 && [el("h3", {}, "Copies that another layout makes needless"), el("ul", {}, copies.needless.map((sentence) => el("li", {}, sentence)))],
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

async function showDetail(panel: HTMLElement, row: Row, audit: Audit, pictures: Pictures): Promise<void> {
  const { report } = audit;
  const advised = recommended(audit).filter((one) => one.shape === row.shape || one.instruction === row.instruction);
  const buffer = report.buffers.find((buffer) => buffer.instruction === row.instruction) ?? report.buffers.find((buffer) => buffer.shape === row.shape);
  const picture = el("div", { class: "picture" });
  const close = el("button", { type: "button", "aria-label": "Close", onclick: () => (panel.hidden = true) }, "×");
  fill(
    panel,
    el("div", { class: "row" }, el("h2", {}, el("code", {}, row.shape)), close),
    el("p", {}, `${row.count > 1 ? `${row.count} arrays, ` : ""}${bytes(row.bytes)}, `, row.padding > 0 ? el("strong", {}, `${bytes(row.padding)} padding`) : "no padding", ` · ${row.role} of `, el("code", { title: row.owner }, shortPath(row.owner)), row.instruction && ` (${row.instruction})`),
    buffer?.cause && el("p", {}, `${buffer.cause[0]?.toUpperCase()}${buffer.cause.slice(1)}.`),
    advised.map((one) => el("div", { class: "fix" }, el("p", {}, one.lead && el("strong", {}, `${one.lead}: `), `${one.sentence}.`), code(one))),
    picture,
  );
  panel.scrollIntoView({ block: "nearest", behavior: "smooth" });
  const draw = async () => void (picture.innerHTML = (await pictures(row.shape).catch(() => null)) ?? "");
  redrawn(picture, draw);
  await draw();
}
