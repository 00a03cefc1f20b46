// A program: whether it fits and the story at its peak, memory over its order, what is alive at a moment, and what to change.

import { bytes, el, fill, fromRoot, grouped, intoView, shortPath, sourceLabel, table, tabs, type Source } from "../dom";
import { prose, said, type Pictures } from "../said";
import { advice, bare, firstOf } from "./advice";
import type { Audit, Cause, Kernel, Remark, Summary, Timeline } from "./data";
import { detail } from "./detail";
import type { Neighbours } from "./graph";
import { kernelTables } from "./kernels";
import { memoryView, type Memory, type Shown } from "./memory";
import { pane } from "./pane";
import type { Row } from "./rows";
import type { Texts } from "./text";

/// The parts that take longer.
export interface Rest {
  summary: Summary;
  kernels: Kernel[];
}

export interface ProgramOptions {
  pictures: Pictures;
  /// The whole summary, where that which is there is only what is said at once.
  rest?: Promise<Rest>;
  /// The arrays in another memory space.
  timelines?: (memorySpace: number) => Promise<Timeline | null>;
  /// The program's text.
  texts?: Texts | undefined;
  /// The Python calls that led to an instruction.
  stack?: (instruction: string) => Promise<Source[]>;
  /// The instructions around one.
  neighbours?: (instruction: string) => Promise<Neighbours | null>;
  /// The events in a memory space between two moments.
  spans?: (memorySpace: number, first: number, last: number) => Promise<Remark[]>;
  /// The first view of the device's memory, and who hears of changes.
  shown?: Shown | undefined;
  changed?: (shown: Shown) => void;
  /// Elements beside the title.
  actions?: HTMLElement[];
}

/// HBM, VMEM, CMEM, SMEM and the host's: others, such as semaphores, no program runs out of.
const MEMORIES = [0, 1, 3, 4, 5];

export function programView(audit: Audit, options: ProgramOptions): HTMLElement {
  const { report, timeline } = audit;
  const above = el("div", {});
  const [first, changes, tables] = [el("div", { class: "soon" }), el("div", {}), el("div", {})];
  const alive = el("section", { "aria-label": "What is alive at the moment" });
  const text = options.texts && pane(options.texts, (instruction) => memory.choose(instruction));
  const texts = text && el("details", { class: "text" }, el("summary", {}, "The program’s text"), text.element);
  let memory: Memory;
  /// The element with the focus when a row was chosen.
  let before: Element | null = null;
  const read = (instruction: string) => {
    if (!texts) return;
    texts.open = true;
    void text.show(instruction).then(() => intoView(texts));
  };
  const closed = () => {
    memory.mark(null);
    work.classList.remove("chosen");
    (before as HTMLElement | null)?.focus?.({ preventScroll: true });
  };
  const { pictures, stack, neighbours } = options;
  const panel = detail(audit, { pictures, closed, opened: texts ? read : null, stack, neighbours, chosen: (instruction) => go(instruction) });
  /// Chooses what an instruction makes; of what has no array of its own there, shows its line.
  function go(instruction: string) {
    if (!memory.choose(instruction)) read(instruction);
  }
  function choose(row: Row) {
    before = document.activeElement;
    work.classList.add("chosen");
    memory.mark(row);
    panel.show(row);
    if (texts?.open && row.instruction) void text?.show(row.instruction);
  }
  function show(space: Timeline | null) {
    const isMain = (space?.memory_space ?? 0) === 0;
    const { spans } = options;
    memory = memoryView({ audit, timeline: space, spans: spans && space ? (first, last) => spans(space.memory_space, first, last) : undefined, shown: (isMain && options.shown) || {}, changed: (isMain && options.changed) || (() => {}), chosen: choose });
    fill(above, memory.timeline);
    fill(alive, memory.alive);
    // Of what has no plan nothing is known to be alive.
    alive.hidden = space === null && !report.memory_spaces.some(({ peak_buffers }) => peak_buffers?.length);
    panel.close();
  }
  // The story is there to be read before the rest is made.
  const shown = new Promise<void>((done) => setTimeout(() => (show(timeline), done(memory.drawn))));
  if (texts) texts.addEventListener("toggle", () => texts.open && void text?.show(report.memory_spaces.find(({ memory_space }) => memory_space === 0)?.peak_instruction ?? ""));
  const spaces = report.memory_spaces.filter(({ memory_space, peak_buffers }) => peak_buffers !== null && MEMORIES.includes(memory_space));
  const other = options.timelines;
  /// The tab that was pressed last: what comes late of another is dropped.
  let wanted = "0";
  const turn = async (id: string) => {
    wanted = id;
    const space = id === "0" ? timeline : await other!(Number(id));
    if (wanted === id) show(space);
  };
  const names = spaces.map((space) => [`${space.memory_space}`, space.memory_space_name.toUpperCase()] as const);
  const memories = other && timeline && spaces.length > 1 && tabs("Memory", names, wanted, (id) => void turn(id));
  const chart = timeline && timeline.moments > 0 && el("section", { "aria-label": "Memory over the program's order" }, el("div", { class: "row" }, el("h2", {}, "Memory over the program’s order"), memories), above);
  // The panel of a chosen row stands beside the chart and the rows.
  const work = el("div", { class: "work" }, el("div", {}, chart, alive), panel.element);
  const element = el("article", { class: "program", "aria-busy": "true" }, story(audit, options.actions ?? [], first), changes, work, texts, tables);
  const rest = () => {
    fill(first, firstOf(audit));
    fill(changes, advice(audit, choose));
    fill(tables, kernelTables(report.kernels), otherTables(audit, choose));
  };
  if (options.rest) fill(changes, el("p", { class: "muted" }, "Computing advice …"));
  else rest();
  const made = options.rest?.then(
    ({ summary, kernels }) => {
      audit.summary = summary;
      report.kernels = kernels;
      rest();
    },
    () => fill(changes),
  );
  void Promise.all([shown, made]).then(() => element.removeAttribute("aria-busy"));
  element.addEventListener("keydown", (event) => event.key === "Escape" && panel.close());
  return element;
}

const COLORS = { arguments: "--resident", results: "--resident-2", constants: "--muted", temporaries: "--tile-0" };

/// Whether it fits, how much it holds, and `first` what to change.
function story({ report, summary }: Audit, actions: HTMLElement[], first: HTMLElement): HTMLElement {
  const parts = summary?.parts.filter((part) => part.bytes > 0) ?? [];
  const held = parts.reduce((sum, part) => sum + part.bytes, 0);
  // To the scale of what there is.
  const limit = summary?.headline.limit_bytes ?? report.hbm_limit_bytes ?? 0;
  const whole = Math.max(held, limit);
  const { headline, causes = [] } = summary ?? {};
  const remarks = summary ? [...summary.peak, ...(summary.time ?? []), ...summary.notes] : [];
  const [loud, faint] = [remarks.filter(({ tone }) => tone !== "faint"), remarks.filter(({ tone }) => tone === "faint")];
  return el(
    "header",
    { class: "story" },
    el("div", { class: "row" }, el("h1", { "aria-live": "polite" }, el("span", { class: `judgement ${{ bad: "bad", warning: "doubt" }[headline?.tone as string] ?? (limit ? "good" : "")}` }, prose(headline?.sentence ?? `Needs ${bytes(report.at_most_bytes)}.`)), " ", el("small", { class: "muted" }, named(summary?.title ?? report.module), " ", named(fromRoot(summary?.origin ?? report.input)))), el("div", { class: "actions" }, actions)),
    headline?.comfort && el("p", {}, prose(headline.comfort)),
    causes.length > 0 && el("ol", { class: "causes", "aria-label": headline?.is_comfortable ? "What it holds" : "Why" }, causes.map(cause)),
    first,
    el("p", { class: "lead" }, el("strong", { title: summary?.held ?? "" }, prose((summary?.held ?? `${bytes(report.at_most_bytes)} of HBM`).replace(EXACT, ""))), ". ", summary && el("span", { class: "muted" }, prose(summary.machine))),
    parts.length > 0 && [
      el("div", { class: "budget", role: "img", "aria-label": parts.map((part) => part.words).join(", ") }, parts.map((part) => el("span", { style: `width:${(100 * part.bytes) / whole}%;background:var(${COLORS[part.kind]})` })), limit > 0 && limit < held && el("b", { class: "capacity", style: `left:${(100 * limit) / whole}%` })),
      el("p", { class: "keys" }, parts.map((part) => el("span", {}, el("i", { style: `background:var(${COLORS[part.kind]})` }), part.words))),
    ],
    loud.map((remark) => el("p", {}, said(remark))),
    faint.length > 0 && el("details", { class: "faint" }, el("summary", {}, "Other memories, and how it is planned and timed"), faint.map((remark) => el("p", {}, said(remark)))),
    // Of a GPU's program or a CPU's it is no warning.
    report.warnings.map(({ kind, message }) => el("p", { class: kind === "not_tpu" ? "muted" : "warning" }, prose(`${message[0]?.toUpperCase()}${message.slice(1)}.`))),
  );
}

/// A part of the peak as a bar, and what it is; of padding, the places that it leaves empty.
function cause({ share, bytes: count, sentence, filled, source }: Cause): HTMLElement {
  const [full, all] = filled ?? [1, 1];
  return el(
    "li",
    {},
    el("span", { class: "number" }, share === null ? "" : `${Math.round(100 * share)} %`),
    el("span", { class: "number" }, bytes(count)),
    el("span", {}, prose(sentence), " ", el("span", { class: "muted" }, shortPath(sourceLabel(source) ?? ""))),
    el("span", { class: "bar", "aria-hidden": "true" }, el("i", { style: `width:${100 * Math.min(share ?? 0, 1)}%` }, filled && el("b", { style: `width:${(100 * full) / all}%` }))),
    filled && el("span", { class: "muted" }, `${full} of ${all} places hold data`),
  );
}

/// The exact bytes behind a rounded size.
const EXACT = / \(\d+\)/;

/// Longer names would fill the screen.
const LONGEST = 200;

/// A name, of a long one its beginning and its end.
function named(name: string): HTMLElement | string {
  return name.length <= LONGEST ? name : el("span", { title: name }, `${name.slice(0, LONGEST / 2)}…${name.slice(-LONGEST / 2)}`);
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
            const open = () => choose(bare({ owner, path: row.op_name ?? "", instruction: row.instruction, shape: row.shape, role: row.opcode === "parameter" ? "argument" : "temporary", bytes: row.physical_bytes, padding: row.padding_bytes }));
            const shape = el("button", { type: "button", class: "link", onclick: open }, el("code", {}, row.shape));
            return [bytes(row.padding_bytes), bytes(row.physical_bytes), shape, row.cause, shortPath(owner)];
          }),
          ["padding", "bytes"],
        ),
      ),
  );
}
