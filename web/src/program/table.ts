// A table of what is alive: filtered, sorted, what is together opened; with the pointer and with the keys.

import { bytes, el, fill, grouped, percent } from "../dom";
import type { Paint } from "./bands";
import { filter as filtering, HELP } from "./filter";
import { key, sum, type Row } from "./rows";

/// Rows of a table before "more".
const SHOWN = 12;

/// The columns to sort by, each with its order: numbers fall, words rise.
const COLUMNS: [name: string, value: (row: Row) => number | string][] = [
  ["bytes", (row) => -row.bytes],
  ["share", (row) => -row.bytes],
  ["padding", (row) => -row.padding],
  ["line", (row) => row.name],
  ["array", (row) => row.shape],
];
const NUMBERS = 3;

export interface RowTable {
  element: HTMLElement;
  /// `drills` where what is together is a row's inside, which has a view of its own.
  show(rows: Row[], paint: Paint, drills: boolean): void;
  /// Marks the row that is chosen, or none.
  mark(row: Row | null): void;
}

export interface TableOptions {
  /// Hears of the row that is opened.
  open: (row: Row) => void;
  /// The first filter, and who hears of its changes.
  filter: string;
  filtered: (filter: string) => void;
  /// The arrays of other moments: a filter asks them, too.
  elsewhere: () => Row[];
  /// Whether a row is alive at a moment, or at the peak.
  isAlive: (row: Row, moment: "peak" | number) => boolean;
}

export function rowTable({ open, filter: first, filtered, elsewhere, isAlive }: TableOptions): RowTable {
  let rows: Row[] = [];
  let drills = false;
  let paint: Paint = () => "--other";
  let chosen: string | null = null;
  let isAll = false;
  let [sorted, isTurned] = [0, false];
  const opened = new Set<string>();
  const body = el("tbody", {});
  const found = el("span", { class: "muted", "aria-live": "polite" });
  const more = el("button", { type: "button", class: "more", onclick: () => ((isAll = true), draw()) });
  const filter = el("input", { type: "search", class: "mono", placeholder: HELP, title: HELP, "aria-label": "Filter the table", spellcheck: "false", value: first });
  filter.addEventListener("input", () => {
    filtered(filter.value);
    draw();
  });
  const headers = COLUMNS.map(([name], at) => {
    const sort = () => {
      isTurned = sorted === at && !isTurned;
      sorted = at;
      draw();
    };
    return el("th", { scope: "col", class: at < NUMBERS ? "number" : "" }, el("button", { type: "button", class: "link", onclick: sort }, name));
  });

  function draw() {
    const isWanted = filter.value.trim() ? filtering(filter.value, isAlive) : null;
    const total = sum(rows, (row) => row.bytes);
    const here = isWanted ? rows.filter(isWanted) : [...rows];
    // Those of other moments stand behind them.
    const others = isWanted ? elsewhere().filter(isWanted) : [];
    const wanted = [...here, ...others];
    const value = COLUMNS[sorted]![1];
    const away = new Set(others);
    const order = (a: Row, b: Row) => Number(away.has(a)) - Number(away.has(b)) || (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (isTurned ? -1 : 1);
    wanted.sort(order);
    headers.forEach((header, at) => {
      // The largest are first unless it is turned.
      if (at === sorted) header.setAttribute("aria-sort", isTurned === at < NUMBERS ? "ascending" : "descending");
      else header.removeAttribute("aria-sort");
    });
    const shown = isAll ? wanted : wanted.slice(0, SHOWN);
    // The focus stays where it is.
    const focused = body.contains(document.activeElement) ? document.activeElement!.closest("tr")!.dataset["key"]! : null;
    fill(body, shown.flatMap((row) => line(row, total, isWanted, away.has(row) ? "away" : "")));
    if (focused !== null) focus(lineOf(focused), { preventScroll: true });
    const left = wanted.length - shown.length;
    more.hidden = left <= 0;
    more.textContent = `${grouped(left)} more`;
    found.textContent = isWanted ? `${grouped(here.length)} of ${grouped(rows.length)}, ${bytes(sum(here, (row) => row.bytes))}${others.length > 0 ? `; ${grouped(others.length)} at other moments` : ""}` : "";
  }

  /// A row, and below it what is together in it, if that is opened.
  function line(row: Row, total: number, isWanted: ((row: Row) => boolean) | null, kind = ""): HTMLElement[] {
    const isOpen = opened.has(key(row)) && row.rows !== undefined;
    const toggle = () => {
      if (isOpen) opened.delete(key(row));
      else opened.add(key(row));
      draw();
      focus(lineOf(key(row)));
    };
    const inner = row.rows && el("button", { type: "button", class: "link opens", "aria-expanded": String(isOpen), "aria-label": `${grouped(row.rows.length)} rows of ${row.name}`, onclick: toggle }, isOpen ? "▾" : "▸");
    const act = () => (row.shape || drills ? open(row) : toggle());
    const kinds = row.rows?.length ?? row.count;
    const array = el("button", { type: "button", class: "link", onclick: act }, row.shape ? el("code", {}, row.shape) : `${grouped(kinds)} ${kinds === 1 ? "kind" : "kinds"} of arrays`);
    const element = el(
      "tr",
      { class: kind, "data-key": key(row), "aria-current": key(row) === chosen ? "true" : null, onclick: (event: Event) => (event.target as Element).closest("button") ?? act() },
      el("td", { class: "number" }, bytes(row.bytes)),
      el("td", { class: "number" }, percent(row.bytes, total)),
      el("td", { class: `number ${row.padding * 2 > row.bytes && row.padding * 100 > total ? "bad" : ""}` }, row.padding > 0 ? percent(row.padding, row.bytes) : "–"),
      el("td", { title: [row.owner, row.path].filter(Boolean).join("\n") }, inner, el("i", { style: `background:var(${paint(row)})` }), row.name, row.role && row.role !== "temporary" && row.role !== row.owner && el("span", { class: "muted" }, ` ${row.role}`)),
      el("td", {}, row.count > 1 && `${grouped(row.count)} × `, array),
    );
    const inside = row.rows?.filter((one) => !isWanted || isWanted(one)) ?? [];
    return [element, ...(isOpen ? inside.flatMap((one) => line(one, total, isWanted, "inner")) : [])];
  }

  const lineOf = (key: string) => body.querySelector(`[data-key="${CSS.escape(key)}"]`);
  const focus = (row: Element | null | undefined, options?: FocusOptions) => row?.querySelector<HTMLElement>("td:last-child button")?.focus(options);
  body.addEventListener("keydown", (event) => {
    const row = (event.target as Element).closest("tr");
    const opens = row?.querySelector<HTMLElement>(".opens");
    const isOpen = opens?.getAttribute("aria-expanded") === "true";
    if (event.key === "ArrowDown") focus(row?.nextElementSibling);
    else if (event.key === "ArrowUp") focus(row?.previousElementSibling);
    else if (event.key === "ArrowRight" && opens && !isOpen) opens.click();
    else if (event.key === "ArrowLeft" && opens && isOpen) opens.click();
    else return;
    event.preventDefault();
  });

  return {
    element: el(
      "div",
      {},
      el("div", { class: "row filter" }, filter, found),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of what is alive" }, el("table", { class: "alive" }, el("thead", {}, el("tr", {}, headers)), body)),
      more,
    ),
    show(next, painted, drilling) {
      [rows, paint, drills] = [next, painted, drilling];
      draw();
    },
    mark(row) {
      chosen = row && key(row);
      for (const line of body.children as HTMLCollectionOf<HTMLElement>) {
        if (line.dataset["key"] === chosen) line.setAttribute("aria-current", "true");
        else line.removeAttribute("aria-current");
      }
    },
  };
}
