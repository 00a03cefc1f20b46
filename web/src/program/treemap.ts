// What is alive as areas: each array as large as what it takes, its padding striped.

import { bytes, el, percent, shortPath } from "../dom";
import type { Paint } from "./bands";
import type { Row } from "./rows";

interface Place {
  row: Row;
  x: number;
  y: number;
  width: number;
  height: number;
}

/// Smaller ones are together one area.
const MOST = 40;

/// Rows as rectangles of the unit square, each as near to a square as can be (Bruls, Huizing, van Wijk: Squarified treemaps).
function squarified(rows: Row[]): Place[] {
  const total = rows.reduce((sum, row) => sum + row.bytes, 0);
  const places: Place[] = [];
  // The rest of the area, in units in which the picture is as wide as it looks.
  let [x, y, width, height] = [0, 0, 2, 1];
  const area = (row: Row) => (2 * row.bytes) / total;
  for (let at = 0; at < rows.length && total > 0; ) {
    const side = Math.min(width, height);
    const worst = (strip: Row[]) => {
      const sum = strip.reduce((sum, row) => sum + area(row), 0);
      return Math.max(...strip.map((row) => Math.max((side * side * area(row)) / (sum * sum), (sum * sum) / (side * side * area(row)))));
    };
    let end = at + 1;
    while (end < rows.length && worst(rows.slice(at, end + 1)) <= worst(rows.slice(at, end))) end++;
    const strip = rows.slice(at, end);
    const thickness = strip.reduce((sum, row) => sum + area(row), 0) / side;
    let along = 0;
    for (const row of strip) {
      const length = area(row) / thickness;
      places.push(
        width >= height
          ? { row, x, y: y + along, width: thickness, height: length }
          : { row, x: x + along, y, width: length, height: thickness },
      );
      along += length;
    }
    if (width >= height) [x, width] = [x + thickness, width - thickness];
    else [y, height] = [y + thickness, height - thickness];
    at = end;
  }
  return places;
}

/// A treemap of rows; a click on an area chooses its row.
export function treemap(rows: Row[], paint: Paint, choose: (row: Row) => void): HTMLElement {
  const shown = rows.filter((row) => row.bytes > 0);
  const rest = shown.slice(MOST);
  if (rest.length) {
    const sum = (of: (row: Row) => number) => rest.reduce((sum, row) => sum + of(row), 0);
    shown.splice(MOST, Infinity, { owner: `${rest.length} smaller`, path: "", instruction: "", shape: "", role: "", pieces: [], count: sum((row) => row.count), bytes: sum((row) => row.bytes), padding: sum((row) => row.padding) });
    shown.sort((a, b) => b.bytes - a.bytes);
  }
  const areas = squarified(shown).map(({ row, x, y, width, height }) => {
    const isLarge = width > 0.22 && height > 0.13;
    const area = el(
      "div",
      {
        class: "area",
        title: `${row.owner}\n${row.shape || `${row.count} arrays`}\n${bytes(row.bytes)}, ${percent(row.padding, row.bytes)} padding`,
        onclick: () => (row.shape || row.rows) && choose(row),
      },
      row.padding > 0 && el("div", { class: "hatched", style: `height:${(100 * row.padding) / row.bytes}%` }),
      isLarge && el("span", {}, shortPath(row.owner), el("br"), bytes(row.bytes)),
    );
    area.style.cssText = `left:${50 * x}%;top:${100 * y}%;width:${50 * width}%;height:${100 * height}%;background:var(${paint(row)})`;
    return area;
  });
  const label = "Areas as large as the arrays alive at this moment, padding striped; the table has the same";
  return el("div", { class: "treemap", role: "img", "aria-label": label }, areas);
}
