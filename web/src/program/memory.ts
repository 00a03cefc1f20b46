// One memory over the program's order: its timeline, and what is alive at a moment as areas and rows. What is chosen in
// one of them is chosen in all.

import { bytes, el, fill, grouped, tabs } from "../dom";
import type { Width } from "./axis";
import { bands, colouringOf, paint, TILES, type Colouring } from "./bands";
import { names, stands, type Audit, type Remark, type Timeline } from "./data";
import { aliveAt, arrays, below, byOwner, ever, folded, isAliveAt, key, rowOf, sum, type Row } from "./rows";
import { rowTable } from "./table";
import { timelineView, type TimelineView } from "./timeline";
import { treemap } from "./treemap";

/// The selection in a memory's view, and how it is shown: the state that an address keeps.
export interface Shown {
  moment?: number;
  rows?: Way;
  module?: string[];
  filter?: string;
  colours?: Colouring;
  width?: Width;
}

const WAYS = [["arrays", "Arrays"], ["lines", "By line"], ["modules", "By module"]] as const;
type Way = (typeof WAYS)[number][0];

export interface MemoryOptions {
  audit: Audit;
  /// Null where it isn't known.
  timeline: Timeline | null;
  /// The events between two of its moments.
  spans: ((first: number, last: number) => Promise<Remark[]>) | undefined;
  shown: Shown;
  /// Hears of every change of it.
  changed: (shown: Shown) => void;
  /// Hears of what is chosen.
  chosen: (row: Row) => void;
}

export interface Memory {
  timeline: HTMLElement | null;
  alive: HTMLElement;
  /// When the timeline is drawn, too.
  drawn: Promise<void>;
  /// Marks what is chosen, wherever that was, or nothing.
  mark(row: Row | null): void;
  /// Chooses what an instruction makes, if that lies in this memory.
  choose(instruction: string): boolean;
}

/// The table and the areas wait so long for the pointer to rest, in milliseconds.
const REST = 60;

export function memoryView({ audit, timeline, spans, shown, changed, chosen }: MemoryOptions): Memory {
  const { report } = audit;
  const space = report.memory_spaces.find(({ memory_space }) => memory_space === (timeline?.memory_space ?? 0));
  const peak = timeline?.peak_moment ?? 0;
  const isMain = (timeline?.memory_space ?? 0) === 0;
  const gaps = space?.peak_fragmentation_bytes ?? 0;
  const state: Required<Shown> = { moment: peak, rows: "arrays", module: [], filter: "", colours: timeline ? colouringOf(audit, timeline) : "lines", width: "order", ...shown };
  let selected: Row | null = null;
  /// Every array of the run, once a filter asks for them.
  let all: Row[] | undefined;
  const set = (change: Partial<Shown>) => changed(Object.assign(state, change));

  const heading = el("h2", { "aria-live": "polite" });
  const areas = el("div", {});
  const path = el("p", { class: "path" });
  const picture = el("div", {});
  const legend = el("p", { class: "keys" });
  const isDrawn = timeline !== null && timeline.moments > 0;
  let colored: ReturnType<typeof bands> | null = null;
  let view: TimelineView | undefined;
  const rows = rowTable({
    open,
    filter: state.filter,
    filtered: (filter) => set({ filter }),
    elsewhere: () => (timeline ? (all ??= ever(timeline)).filter((row) => !isAliveAt(timeline, row, state.moment)) : []),
    isAlive: (row, moment) => !timeline || isAliveAt(timeline, row, moment === "peak" ? peak : moment),
  });

  function choose(row: Row) {
    // A row that isn't alive at this moment is shown at its first.
    if (timeline && row.pieces.length && !isAliveAt(timeline, row, state.moment)) view?.show(timeline.pieces.first[row.pieces[0]!]!);
    // A row that moments have in common is chosen with what lies there now.
    selected = row;
    chosen(row);
  }
  function open(row: Row) {
    if (state.rows !== "modules" || !row.rows || row.shape) return choose(row.rows?.[0] ?? row);
    set({ module: [...state.module, row.owner] });
    show();
  }
  function together(alive: Row[]): Row[] {
    if (state.rows === "lines") return byOwner(alive);
    return state.rows === "modules" ? below(alive, state.module) : folded(alive);
  }
  function title(alive: Row[]) {
    const padding = sum(alive, (row) => row.padding);
    const owner = timeline?.owner_names[timeline.order_owners[state.moment] ?? -1] ?? "";
    const isPeak = !timeline || state.moment === peak;
    const words = [
      padding > 0 && `${bytes(padding)} of it padding`,
      isPeak && isMain && gaps > 0 && `${bytes(report.at_most_bytes)} with fragmentation`,
      timeline && `while ${names(timeline)[state.moment] ?? ""} runs${owner && ` (${owner})`}`,
    ];
    fill(heading, `${isPeak ? "At the peak" : `At step ${grouped(state.moment + 1)}`}: ${bytes(sum(alive, (row) => row.bytes))} in use`, el("span", { class: "muted" }, words.filter(Boolean).map((words) => `, ${words}`).join("")));
  }
  function show() {
    const alive = aliveAt(audit, timeline, state.moment);
    title(alive);
    const listed = together(alive);
    // Modules have the colours of their order.
    const order = new Map(listed.map((row, at) => [row, at]));
    const painted = state.rows === "modules" ? (row: Row) => `--tile-${(order.get(row) ?? 0) % TILES}` : paint(colored);
    // Where layers have colours, each is an area.
    const split = state.rows === "arrays" && state.colours === "layers";
    fill(areas, treemap(split ? [...folded(alive.filter(stands)), ...alive.filter((row) => !stands(row))] : listed, painted, open));
    path.hidden = state.rows !== "modules";
    const up = (depth: number) => () => {
      set({ module: state.module.slice(0, depth) });
      show();
    };
    fill(path, ["All", ...state.module].map((name, depth) => [depth > 0 && " / ", depth === state.module.length ? el("strong", {}, name) : el("button", { type: "button", class: "link", onclick: up(depth) }, name)]).flat());
    rows.show(listed, painted, state.rows === "modules");
    rows.mark(selected);
  }
  const ways = tabs("Rows", WAYS, state.rows, (id) => {
    set({ rows: id as Way, module: [] });
    show();
  });

  function draw() {
    if (!isDrawn) return;
    colored = bands(audit, timeline, state.colours);
    let rest = 0;
    view = timelineView({
      timeline,
      bands: colored,
      limit: isMain ? report.hbm_limit_bytes : null,
      held: isMain ? report.at_most_bytes : null,
      width: state.width,
      spans,
      moved(moment) {
        if (moment === state.moment) return;
        set({ moment });
        clearTimeout(rest);
        rest = window.setTimeout(show, REST);
      },
      chosen: (piece) => choose(rowOf(timeline, piece)),
    });
    fill(picture, view.element);
    if (selected) mark(selected);
    const at = state.moment;
    if (at !== peak) requestAnimationFrame(() => view?.show(at));
    const swatch = (color: string, name: string, title = name) => el("span", { title }, el("i", { style: `background:var(${color})` }), name);
    const isTemporary = timeline.pieces.first.length > 0;
    const [limit, most] = [isMain ? report.hbm_limit_bytes : null, report.at_most_bytes];
    fill(
      legend,
      timeline.resident_bytes > 0 && swatch("--resident", timeline.residents.map(({ name }) => name).slice(0, 6).join(", ")),
      colored.legend.map(({ name, title, tile }) => swatch(`--tile-${tile}`, name, title)),
      isTemporary && swatch("--other", state.colours === "lines" ? "other lines" : "no layer"),
      el("span", {}, el("i", { class: "hatched" }), "padding"),
      el("span", {}, el("i", { class: "line" }), "without padding"),
      state.width === "time" && timeline.bound_moments.length > 0 && el("span", {}, el("i", { class: "hatched" }), "below the axis: time only bounded"),
      limit !== null && limit >= 2 * most && el("span", {}, `limit ${bytes(limit)}, far above`),
    );
  }
  function mark(row: Row | null) {
    selected = row;
    rows.mark(row);
    // Of what stands there is no piece.
    view?.mark(row && !stands(row) ? (row.pieces[0] ?? pieceOf(row)) : null);
  }
  /// Of a row that has none, the piece of its line and shape at the moment.
  const pieceOf = (row: Row): number | null => arrays(aliveAt(audit, timeline, state.moment)).find((one) => key(one) === key(row))?.pieces[0] ?? null;

  show();
  // Tasks of their own: of large programs, each takes a while, and the page answers in between.
  const again = async () => {
    draw();
    await new Promise((done) => setTimeout(done));
    show();
  };
  const drawn = new Promise<void>((done) => setTimeout(() => void again().then(done)));
  const colours = (timeline?.layers.length ?? 0) > 1 && tabs("Colours", [["lines", "By line"], ["layers", "By layer"]], state.colours, (id) => {
    set({ colours: id as Colouring });
    void again();
  });
  const widths = timeline && timeline.seconds.length > 0 && tabs("Axis", [["order", "Program order"], ["time", "Estimated time"]], state.width, (id) => {
    set({ width: id as Width });
    void again();
  });
  return {
    timeline: isDrawn ? el("div", {}, el("div", { class: "tools" }, colours, widths), picture, legend) : null,
    alive: el("div", {}, el("div", { class: "row" }, heading, ways), areas, path, rows.element),
    drawn,
    mark,
    choose(instruction) {
      if (!timeline) return false;
      const piece = names(timeline.pieces).indexOf(instruction);
      const row = piece >= 0 ? rowOf(timeline, piece) : arrays(aliveAt(audit, timeline, peak)).find((row) => row.instruction === instruction);
      if (row) choose(row);
      return row !== undefined;
    },
  };
}
