// The instructions around an array: what it is made from, and what is made of it, three steps each way. Who is how far from
// it, the core says; here they are put in columns.

import { bytes, el, grouped } from "../dom";

/// As `tilewise_audit::Neighbours` is printed.
export interface Neighbours {
  instructions: { name: string; opcode: string; shape: string; bytes: number; depth: number }[];
  edges: [from: number, to: number][];
  left_out: [depth: number, count: number][];
}

const WIDE = 136;
const HIGH = 46;
const ACROSS = 30;
const DOWN = 8;

/// `open` hears of the instruction that is chosen.
export function graph({ instructions, edges, left_out }: Neighbours, open: (instruction: string) => void): HTMLElement {
  const depths = [...new Set(instructions.map(({ depth }) => depth))].sort((a, b) => a - b);
  const columns = depths.map((depth) => instructions.flatMap((one, at) => (one.depth === depth ? [at] : [])));
  const tallest = Math.max(...columns.map((column) => column.length + (left_out.length > 0 ? 1 : 0)));
  const [width, height] = [columns.length * (WIDE + ACROSS) - ACROSS, tallest * (HIGH + DOWN) - DOWN];
  const places: { x: number; y: number }[] = [];
  const notes: HTMLElement[] = [];
  columns.forEach((column, at) => {
    const left = at * (WIDE + ACROSS);
    column.forEach((one, row) => (places[one] = { x: left, y: row * (HIGH + DOWN) }));
    const [, more = 0] = left_out.find(([depth]) => depth === depths[at]) ?? [];
    if (more) notes.push(el("span", { class: "muted", style: `left:${left}px;top:${column.length * (HIGH + DOWN)}px;width:${WIDE}px` }, `and ${grouped(more)} more`));
  });
  const nodes = instructions.map(({ name, opcode, shape, bytes: count, depth }, at) => {
    const { x, y } = places[at]!;
    const says = `${name}: ${opcode}, ${shape}, ${bytes(count)}`;
    return el(
      "button",
      { type: "button", class: depth === 0 ? "node here" : "node", title: says, "aria-current": depth === 0 ? "true" : null, style: `left:${x}px;top:${y}px;width:${WIDE}px;height:${HIGH}px`, onclick: () => open(name) },
      el("b", { class: "mono" }, name),
      el("span", { class: "muted" }, `${opcode === name.split(".")[0] ? "" : `${opcode} · `}${bytes(count)}`),
    );
  });
  const line = ([from, to]: [number, number]) => {
    const [a, b] = [places[from]!, places[to]!];
    const [x1, y1, x2, y2] = [a.x + WIDE, a.y + HIGH / 2, b.x, b.y + HIGH / 2];
    const bend = (x2 - x1) / 2;
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  };
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.setAttribute("width", `${width}`);
  lines.setAttribute("height", `${height}`);
  lines.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", edges.map(line).join(""));
  lines.append(path);
  const field = el("div", { class: "field", style: `width:${width}px;height:${height}px` }, nodes, notes);
  field.prepend(lines);
  const scroll = el("div", { class: "scroll graph", tabindex: "0", role: "group", "aria-label": "Instructions around it" }, field);
  // The one in the middle is seen first.
  const middle = places[instructions.findIndex(({ depth }) => depth === 0)];
  const observer = new ResizeObserver(() => {
    if (!middle || !scroll.clientWidth) return;
    scroll.scrollLeft = middle.x + WIDE / 2 - scroll.clientWidth / 2;
    observer.disconnect();
  });
  observer.observe(scroll);
  return scroll;
}
