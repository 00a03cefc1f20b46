// One memory over the program's order: its timeline, and what is alive at a moment as areas and rows. What is chosen in
// one of them is chosen in all.

import { bytes, el, fill, grouped, shortPath, tabs } from "../dom";
import { bands, paint, TILES, type Colouring } from "./bands";
import { names, stands, type Audit, type Timeline } from "./data";
import { aliveAt, below, byOwner, folded, key, rowOf, type Row } from "./rows";
import { rowTable } from "./table";
import { timelineView, type TimelineView } from "./timeline";
import { treemap } from "./treemap";

export interface MemoryOptions {
  audit: Audit;
  /// Null where it isn't known.
  timeline: Timeline | null;
  /// The moment to begin with, instead of the peak.
  moment?: number | undefined;
  moved?: ((moment: number) => void) | undefined;
  /// Hears of what is chosen.
  chosen: (row: Row) => void;
}

export interface Memory {
  timeline: HTMLElement | null;
  alive: HTMLElement;
  /// Marks what is chosen, wherever that was, or nothing.
  mark(row: Row | null): void;
}

/// The table and the areas wait so long for the pointer to rest, in milliseconds.
const REST = 60;

export function memoryView({ audit, timeline, moment: start, moved, chosen }: MemoryOptions): Memory {
  const { report } = audit;
  const space = report.memory_spaces.find(({ memory_space }) => memory_space === (timeline?.memory_space ?? 0));
  const peak = timeline?.peak_moment ?? 0;
  const isMain = (timeline?.memory_space ?? 0) === 0;
  const gaps = space?.peak_fragmentation_bytes ?? 0;
  let moment = start ?? peak;
  let way = "arrays";
  let module: string[] = [];
  let selected: Row | null = null;
  let colouring: Colouring = "lines";

  const heading = el("h2", { "aria-live": "polite" });
  const areas = el("div", {});
  const path = el("p", { class: "path" });
  const picture = el("div", {});
  const legend = el("p", { class: "keys" });
  const isDrawn = timeline !== null && timeline.moments > 0;
  let colored: ReturnType<typeof bands> | null = null;
  let view: TimelineView | undefined;
  const rows = rowTable(choose);

  function choose(row: Row) {
    // A row that moments have in common is chosen with what lies there now.
    selected = row;
    chosen(row);
  }
  function open(row: Row) {
    if (way !== "modules" || !row.rows) return choose(row.rows?.[0] ?? row);
    module = [...module, row.owner];
    show();
  }
  function together(alive: Row[]): Row[] {
    if (way === "lines") return byOwner(alive);
    return way === "modules" ? below(alive, module) : folded(alive);
  }
  function title(alive: Row[]) {
    const total = alive.reduce((sum, row) => sum + row.bytes, 0);
    const padding = alive.reduce((sum, row) => sum + row.padding, 0);
    const owner = shortPath(timeline?.owners[timeline.order_owners[moment] ?? -1] ?? "");
    const isPeak = !timeline || moment === peak;
    const words = [padding > 0 && `${bytes(padding)} padding`, isPeak && gaps > 0 && `${bytes(gaps)} fragmentation`, timeline && `while ${names(timeline)[moment] ?? ""} runs${owner && ` (${owner})`}`];
    fill(heading, `${isPeak ? "At the peak" : `At step ${grouped(moment + 1)}`}: ${bytes(total)}`, el("span", { class: "muted" }, ` ${words.filter(Boolean).join(", ")}`));
  }
  function show() {
    const alive = aliveAt(audit, timeline, moment);
    title(alive);
    const shown = together(alive);
    // Modules have the colours of their order.
    const order = new Map(shown.map((row, at) => [row, at]));
    const painted = way === "modules" ? (row: Row) => `--tile-${(order.get(row) ?? 0) % TILES}` : paint(colored);
    fill(areas, treemap(shown, painted, open));
    path.hidden = way !== "modules";
    const up = (depth: number) => () => {
      module = module.slice(0, depth);
      show();
    };
    fill(path, ["All", ...module].map((name, depth) => [depth > 0 && " / ", depth === module.length ? el("strong", {}, name) : el("button", { type: "button", class: "link", onclick: up(depth) }, name)]).flat());
    rows.show(shown, painted);
    rows.mark(selected);
  }
  const waysOf: [string, string][] = [["arrays", "Arrays"], ["lines", "By line"], ["modules", "By module"]];
  const ways = tabs("Rows", waysOf, way, (id) => {
    [way, module] = [id, []];
    show();
  });

  function recolor() {
    colored = timeline && bands(audit, timeline, colouring);
  }
  function draw() {
    if (!isDrawn || !colored) return;
    let rest = 0;
    const held = isMain ? report.at_most_bytes : null;
    view = timelineView({
      timeline,
      bands: colored,
      limit: isMain ? report.hbm_limit_bytes : null,
      held,
      moved(at) {
        moment = at;
        moved?.(at);
        clearTimeout(rest);
        rest = window.setTimeout(show, REST);
      },
      chosen: (piece) => choose(rowOf(timeline, piece)),
    });
    fill(picture, view.element);
    const swatch = (color: string, name: string, short = name) => el("span", { title: name }, el("i", { style: `background:var(${color})` }), short);
    const isTemporary = timeline.pieces.first.length > 0;
    fill(
      legend,
      timeline.resident_bytes > 0 && swatch("--resident", timeline.residents.map(({ name }) => name).slice(0, 6).join(", ")),
      colored.legend.map(({ name, tile }) => swatch(`--tile-${tile}`, name, colouring === "layers" ? name.split("/").slice(-2).join("/") : shortPath(name))),
      isTemporary && swatch("--other", colouring === "lines" ? "other lines" : "no layer"),
      el("span", {}, el("i", { class: "hatched" }), "padding"),
      isTemporary && el("span", {}, el("i", { class: "free" }), "free"),
    );
  }
  recolor();
  show();
  // A task of its own: of large programs, each takes a while, and the page answers in between.
  setTimeout(() => {
    draw();
    if (moment !== peak) requestAnimationFrame(() => view?.show(moment));
  });
  const colourings = (timeline?.layers.length ?? 0) > 1 && tabs("Colours", [["lines", "By line"], ["layers", "By layer"]], colouring, (id) => {
    colouring = id as Colouring;
    const at = moment;
    recolor();
    draw();
    show();
    requestAnimationFrame(() => view?.show(at));
  });
  return {
    timeline: isDrawn ? el("div", {}, colourings, picture, legend) : null,
    alive: el("div", {}, el("div", { class: "row" }, heading, ways), areas, path, rows.element),
    mark(row) {
      selected = row;
      rows.mark(row);
      // Of what stands there is no piece.
      view?.mark(row && !stands(row) ? (row.pieces[0] ?? (timeline && pieceOf(row))) : null);
    },
  };

  /// Of a row that has none, the piece of its line and shape at the moment.
  function pieceOf(row: Row): number | null {
    return aliveAt(audit, timeline, moment).find((one) => key(one) === key(row))?.pieces[0] ?? null;
  }
}
