// A table of what is alive: filtered, sorted, what is together opened; with the pointer and with the keys.

import { bytes, el, fill, grouped, percent, shortPath } from "../dom";
import type { Paint } from "./bands";
import { key, type Row } from "./rows";

/// Rows of a table before "more".
const SHOWN = 12;

/// What can be sorted by, and its order: numbers fall, words rise.
const COLUMNS: [name: string, value: (row: Row) => number | string][] = [
  ["bytes", (row) => -row.bytes],
  ["share", (row) => -row.bytes],
  ["padding", (row) => -row.padding],
  ["line", (row) => shortPath(row.owner)],
  ["array", (row) => row.shape],
];
const NUMBERS = 3;

/// What a word of a filter asks of a row; a word alone asks all of it.
const FIELDS: Record<string, (row: Row) => string> = {
  line: (row) => row.owner,
  op: (row) => `${row.path} ${row.instruction}`,
  shape: (row) => row.shape,
  role: (row) => row.role,
};

function matches(row: Row, filter: string): boolean {
  if (row.rows?.some((one) => matches(one, filter))) return true;
  return filter.split(/\s+/).every((word) => {
    const [, name = "", text = ""] = /^(\w+):(.*)$/.exec(word) ?? [];
    const of = FIELDS[name];
    const value = of ? of(row) : Object.values(FIELDS).map((field) => field(row)).join(" ");
    return value.toLowerCase().includes(of ? text : word);
  });
}

export interface RowTable {
  element: HTMLElement;
  show(rows: Row[], paint: Paint): void;
  /// Marks the row that is chosen, or none.
  mark(row: Row | null): void;
}

export function rowTable(choose: (row: Row) => void): RowTable {
  let rows: Row[] = [];
  let paint: Paint = () => "--other";
  let chosen: string | null = null;
  let isAll = false;
  let [sorted, isTurned] = [0, false];
  const opened = new Set<string>();
  const body = el("tbody", {});
  const found = el("span", { class: "muted", "aria-live": "polite" });
  const more = el("button", { type: "button", class: "more", onclick: () => ((isAll = true), draw()) });
  const filter = el("input", { type: "search", class: "mono", placeholder: "Filter: words, line:, op:, shape:, role:", "aria-label": "Filter the table", spellcheck: "false", oninput: () => draw() });
  const headers = COLUMNS.map(([name], at) => {
    const sort = () => {
      isTurned = sorted === at && !isTurned;
      sorted = at;
      draw();
    };
    return el("th", { scope: "col", class: at < NUMBERS ? "number" : "" }, el("button", { type: "button", class: "link", onclick: sort }, name));
  });

  function draw() {
    const words = filter.value.trim().toLowerCase();
    const total = rows.reduce((sum, row) => sum + row.bytes, 0);
    const wanted = words ? rows.filter((row) => matches(row, words)) : [...rows];
    const value = COLUMNS[sorted]![1];
    const order = (a: Row, b: Row) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (isTurned ? -1 : 1);
    wanted.sort(order);
    headers.forEach((header, at) => {
      // The largest are first unless it is turned.
      if (at === sorted) header.setAttribute("aria-sort", isTurned === at < NUMBERS ? "ascending" : "descending");
      else header.removeAttribute("aria-sort");
    });
    const shown = isAll ? wanted : wanted.slice(0, SHOWN);
    fill(body, shown.flatMap((row) => line(row, total, words)));
    const left = wanted.length - shown.length;
    more.hidden = left <= 0;
    more.textContent = `${grouped(left)} more`;
    found.textContent = words ? `${grouped(wanted.length)} of ${grouped(rows.length)}, ${bytes(wanted.reduce((sum, row) => sum + row.bytes, 0))}` : "";
  }

  /// A row, and below it what is together in it, if that is opened.
  function line(row: Row, total: number, words: string, isInner = false): HTMLElement[] {
    const isOpen = opened.has(key(row)) && row.rows !== undefined;
    const toggle = () => {
      if (isOpen) opened.delete(key(row));
      else opened.add(key(row));
      draw();
      focus(body.querySelector(`[data-key="${CSS.escape(key(row))}"]`));
    };
    const inner = row.rows && el("button", { type: "button", class: "link opens", "aria-expanded": String(isOpen), "aria-label": `${grouped(row.rows.length)} rows of ${shortPath(row.owner)}`, onclick: toggle }, isOpen ? "▾" : "▸");
    const array = row.shape
      ? el("button", { type: "button", class: "link", onclick: () => choose(row) }, el("code", {}, row.shape))
      : el("button", { type: "button", class: "link", onclick: toggle }, `${grouped(row.rows?.length ?? row.count)} kinds of arrays`);
    const element = el(
      "tr",
      { class: isInner ? "inner" : "", "data-key": key(row), "aria-current": key(row) === chosen ? "true" : null, onclick: (event: Event) => (event.target as Element).closest("button") ?? (row.shape ? choose(row) : toggle()) },
      el("td", { class: "number" }, bytes(row.bytes)),
      el("td", { class: "number" }, percent(row.bytes, total)),
      el("td", { class: `number ${row.padding * 2 > row.bytes ? "bad" : ""}` }, row.padding > 0 ? percent(row.padding, row.bytes) : "–"),
      el("td", { title: row.owner }, inner, el("i", { style: `background:var(${paint(row)})` }), shortPath(row.owner), row.role && row.role !== "temporary" && row.role !== row.owner && el("span", { class: "muted" }, ` ${row.role}`)),
      el("td", {}, row.count > 1 && `${grouped(row.count)} × `, array),
    );
    const inside = row.rows?.filter((one) => !words || matches(one, words)) ?? [];
    return [element, ...(isOpen ? inside.flatMap((one) => line(one, total, words, true)) : [])];
  }

  const focus = (row: Element | null | undefined) => row?.querySelector<HTMLElement>("td:last-child button")?.focus();
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
    show(next, painted) {
      [rows, paint] = [next, painted];
      draw();
    },
    mark(row) {
      chosen = row && key(row);
      for (const line of body.children) {
        if ((line as HTMLElement).dataset["key"] === chosen) line.setAttribute("aria-current", "true");
        else line.removeAttribute("aria-current");
      }
    },
  };
}
