// The rows alive as areas: each array as large as its bytes, its padding striped.

import { bytes, el, percent } from "../dom";
import type { Paint } from "./bands";
import { sum, type Row } from "./rows";

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
  const total = sum(rows, (row) => row.bytes);
  const places: Place[] = [];
  // The rest of the area, in units in which the picture is as wide as it looks.
  let [x, y, width, height] = [0, 0, 2, 1];
  const area = (row: Row) => (2 * row.bytes) / total;
  for (let at = 0; at < rows.length && total > 0; ) {
    const side = Math.min(width, height);
    const worst = (strip: Row[]) => {
      const whole = sum(strip, area);
      return Math.max(...strip.map((row) => Math.max((side * side * area(row)) / (whole * whole), (whole * whole) / (side * side * area(row)))));
    };
    let end = at + 1;
    while (end < rows.length && worst(rows.slice(at, end + 1)) <= worst(rows.slice(at, end))) end++;
    const strip = rows.slice(at, end);
    const thickness = sum(strip, area) / side;
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
  const shown = rows.filter((row) => row.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  // Labels that would repeat say what differs.
  const texts = ({ name, module, shape }: Row) => [name, module.split("/").slice(-2).join("/"), shape.split("{")[0]!];
  const named = new Map<string, number>();
  for (const text of shown.flatMap(texts)) named.set(text, (named.get(text) ?? 0) + 1);
  const label = (row: Row) => texts(row).find((text) => text && named.get(text) === 1) ?? (row.shape ? texts(row)[2]! : row.name);
  const rest = shown.slice(MOST);
  if (rest.length) {
    const name = `${rest.length} smaller`;
    shown.splice(MOST, Infinity, { owner: name, name, path: "", module: "", instruction: "", shape: "", role: "", pieces: [], count: sum(rest, (row) => row.count), bytes: sum(rest, (row) => row.bytes), padding: sum(rest, (row) => row.padding) });
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
      isLarge && el("span", {}, el("b", {}, label(row)), height > 0.2 && bytes(row.bytes)),
    );
    area.style.cssText = `left:${50 * x}%;top:${100 * y}%;width:${50 * width}%;height:${100 * height}%;background:var(${paint(row)})`;
    return area;
  });
  const description = "Areas as large as the arrays alive at this moment, padding striped; the table has the same";
  return el("div", { class: "treemap", role: "img", "aria-label": description }, areas);
}
