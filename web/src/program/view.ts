// A program: the story at its peak, memory over its order, what is alive at a moment, and what to change.

import { bytes, el, fill, fromRoot, grouped, shortPath, sourceLabel, table, tabs } from "../dom";
import { code, prose, said, type Pictures } from "../said";
import type { Audit, Recommended, Summary, Timeline } from "./data";
import { detail } from "./detail";
import { memoryView, type Memory } from "./memory";
import { pane } from "./pane";
import { aliveAt, type Row } from "./rows";
import type { Texts } from "./text";

export interface ProgramOptions {
  pictures: Pictures;
  /// The whole summary, where that which is there is only what is said at once.
  summary?: Promise<Summary>;
  /// What lies in another memory space.
  timelines?: (memorySpace: number) => Promise<Timeline | null>;
  /// The program's text.
  texts?: Texts | undefined;
  /// The moment to begin with, instead of the peak.
  moment?: number | undefined;
  moved?: (moment: number) => void;
  /// What stands beside the title.
  actions?: HTMLElement[];
}

/// HBM, VMEM, CMEM, SMEM and the host's: others, such as semaphores, no program runs out of.
const MEMORIES = [0, 1, 3, 4, 5];

export function programView(audit: Audit, options: ProgramOptions): HTMLElement {
  const { report, timeline } = audit;
  const above = el("div", {});
  const [changes, tables] = [el("div", {}), el("div", {})];
  const alive = el("section", { "aria-label": "What is alive at the moment" });
  const text = options.texts && pane(options.texts);
  const texts = text && el("details", { class: "text" }, el("summary", {}, "The program’s text"), text.element);
  let memory: Memory;
  /// What had the focus when a row was chosen.
  let before: Element | null = null;
  const read = (instruction: string) => {
    if (!texts) return;
    texts.open = true;
    void text.show(instruction).then(() => texts.scrollIntoView({ block: "nearest", behavior: "smooth" }));
  };
  const closed = () => {
    memory.mark(null);
    (before as HTMLElement | null)?.focus?.();
  };
  const panel = detail(audit, options.pictures, closed, texts ? read : null);
  function choose(row: Row) {
    before = document.activeElement;
    memory.mark(row);
    panel.show(row);
    if (texts?.open && row.instruction) void text?.show(row.instruction);
  }
  function show(shown: Timeline | null) {
    const isMain = (shown?.memory_space ?? 0) === 0;
    memory = memoryView({ audit, timeline: shown, moment: isMain ? options.moment : undefined, moved: isMain ? options.moved : undefined, chosen: choose });
    fill(above, memory.timeline);
    fill(alive, memory.alive);
    panel.close();
  }
  // The story is there to be read before the rest is made.
  setTimeout(() => show(timeline));
  if (texts) texts.addEventListener("toggle", () => texts.open && void text?.show(report.memory_spaces.find(({ memory_space }) => memory_space === 0)?.peak_instruction ?? ""));
  const spaces = report.memory_spaces.filter(({ memory_space, peak_buffers }) => peak_buffers !== null && MEMORIES.includes(memory_space));
  const other = options.timelines;
  const memories =
    other && timeline && spaces.length > 1
      ? tabs("Memory", spaces.map((space) => [`${space.memory_space}`, space.memory_space_name.toUpperCase()] as const), "0", (id) => void (id === "0" ? Promise.resolve(timeline) : other(Number(id))).then(show))
      : null;
  const element = el(
    "article",
    { class: "program" },
    story(audit, options.actions ?? []),
    changes,
    timeline && timeline.moments > 0 && el("section", { "aria-label": "Memory over the program's order" }, el("div", { class: "row" }, el("h2", {}, "Memory over the program’s order"), memories), above),
    el("div", { class: "beside" }, alive, panel.element),
    texts,
    tables,
  );
  const rest = () => {
    fill(changes, advice(audit, choose), contents(audit));
    fill(tables, otherTables(audit, choose));
  };
  if (options.summary) {
    fill(changes, el("p", { class: "muted" }, "Computing advice …"));
    void options.summary.then(
      (summary) => {
        audit.summary = summary;
        rest();
      },
      () => fill(changes),
    );
  } else rest();
  element.addEventListener("keydown", (event) => event.key === "Escape" && panel.close());
  return element;
}

const COLORS = { arguments: "--resident", results: "--tile-7", constants: "--tile-2", temporaries: "--tile-0" };

function story({ report, summary }: Audit, actions: HTMLElement[]): HTMLElement {
  const parts = summary?.parts.filter((part) => part.bytes > 0) ?? [];
  const whole = parts.reduce((sum, part) => sum + part.bytes, 0);
  return el(
    "header",
    { class: "story" },
    el("div", { class: "row" }, el("h1", {}, summary?.title ?? report.module, " ", el("span", { class: "muted" }, fromRoot(summary?.origin ?? report.input))), el("div", { class: "actions" }, actions)),
    el("p", { class: "lead" }, el("strong", {}, summary?.headline ?? `${bytes(report.at_most_bytes)} of HBM`), ". ", summary?.verdict && said(summary.verdict), summary && el("span", { class: "muted" }, " ", prose(summary.machine))),
    parts.length > 0 && [
      el("div", { class: "budget", role: "img", "aria-label": parts.map((part) => part.words).join(", ") }, parts.map((part) => el("span", { style: `width:${(100 * part.bytes) / whole}%;background:var(${COLORS[part.kind]})` }))),
      el("p", { class: "keys" }, parts.map((part) => el("span", {}, el("i", { style: `background:var(${COLORS[part.kind]})` }), part.words))),
    ],
    summary && [...summary.peak, ...summary.notes].map((remark) => el("p", {}, said(remark))),
    // Of a GPU's program or a CPU's it is no warning.
    report.warnings.map(({ kind, message }) => el("p", { class: kind === "not_tpu" ? "muted" : "warning" }, prose(`${message[0]?.toUpperCase()}${message.slice(1)}`))),
  );
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
          const rows = aliveAt(audit, audit.timeline, audit.timeline?.peak_moment ?? 0).filter((row) => row.shape === shape);
          const owner = sourceLabel(one.source) ?? one.instruction ?? "";
          const row = rows.find((row) => row.instruction === one.instruction || owner.startsWith(row.owner));
          choose(row ?? { owner, path: "", instruction: one.instruction ?? "", shape, role: one.target, count: 1, bytes: 0, padding: 0, pieces: [] });
        };
        return el(
          "li",
          {},
          el("div", { class: "row" }, one.lead && el("strong", {}, one.lead), el("span", { class: "muted" }, shortPath(sourceLabel(one.source) ?? ""))),
          el("p", {}, prose(`${one.sentence}.`)),
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
export function recommended({ report, summary }: Audit): Recommended[] {
  return summary?.recommendations ?? report.advice.map((one) => ({ lead: "", ...one }));
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
          "Table of copies by line",
          ["moves", "copies", "purpose", "line", "why"],
          copies.lines.map((line) => [
            `${bytes(line.moved_bytes)}${line.is_lower_bound ? "+" : ""}`,
            grouped(line.copies),
            line.purpose,
            shortPath(sourceLabel(line.source) ?? line.instruction),
            line.why && el("span", {}, prose(line.why)),
          ]),
          ["moves", "copies"],
        ),
        copies.needless.length > 0 && [el("h3", {}, "Copies that another layout makes needless"), el("ul", {}, copies.needless.map((sentence) => el("li", {}, prose(sentence))))],
      ),
    report.buffers.length > 0 &&
      el(
        "details",
        {},
        el("summary", {}, `Buffers with the most padding (${report.buffers.length})`),
        table(
          "Table of buffers with the most padding",
          ["padding", "bytes", "array", "why", "line"],
          report.buffers.map((row) => {
            const owner = sourceLabel(row.source) ?? row.op_name ?? row.instruction;
            const open = () => choose({ owner, path: row.op_name ?? "", instruction: row.instruction, shape: row.shape, role: row.opcode === "parameter" ? "argument" : "temporary", count: 1, bytes: row.physical_bytes, padding: row.padding_bytes, pieces: [] });
            const shape = el("button", { type: "button", class: "link", onclick: open }, el("code", {}, row.shape));
            return [bytes(row.padding_bytes), bytes(row.physical_bytes), shape, row.cause, shortPath(owner)];
          }),
          ["padding", "bytes"],
        ),
      ),
  );
}
