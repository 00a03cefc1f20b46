// A shape: its picture, what each part of the notation means, and where each element lies.

import { ask, drawn, json } from "../core";
import { bytes, copy, download, el, fill, grouped, percent, redrawn, tabs, toPng } from "../dom";
import { failure } from "../failure";
import type { Generation, Part, Shown } from "./data";
import { tpuPanel } from "./tpu";

/// An element or padding, and where it lies.
interface Place {
  linear_index: number;
  index?: number[];
  physical_index: number[] | null;
  byte: number;
  bit: number;
  bits: number;
  word: number[][];
}

interface Compared {
  relation: string;
  clauses: string[];
}

export interface ShapeOptions {
  other?: string | undefined;
  picture?: string | undefined;
  /// Hears of what is shown, for the address.
  changed: (state: { other?: string | undefined; picture?: string | undefined }) => void;
  /// Shows another shape.
  open: (text: string) => void;
}

const PICTURES = [
  ["both", "Array and memory"],
  ["logical", "Array"],
  ["memory", "Memory"],
  ["word", "Words"],
  ["steps", "Steps"],
] as const;

const LANGUAGES = [
  ["text", "In words"],
  ["numpy", "NumPy"],
  ["einops", "einops"],
  ["mlir", "MLIR"],
] as const;

export async function shapeView(text: string, options: ShapeOptions): Promise<HTMLElement> {
  const shown = await json<Shown>("show", text);
  if (shown.leaves) return tupleView(shown, options);
  let picture = options.picture ?? "both";
  let other = options.other ?? "";
  let slices: number[] = [];
  /// The other layout, where it can be compared with.
  let compared = "";

  const canvas = el("div", { class: "picture canvas", tabindex: "0", role: "group", "aria-label": "Cells of the picture; arrow keys move between them" });
  const place = el("p", { class: "place muted", "aria-live": "polite" }, HINT);
  const meaning = el("p", { class: "meaning muted", "aria-live": "polite" }, meant(shown));
  const verdict = el("div", { "aria-live": "polite" });
  const cells = new Cells(canvas, place, text);
  const notation = el("h1", { class: "notation" });

  async function draw(other = compared) {
    try {
      if (other && picture === "both") {
        // Only arrays of one shape have a picture of what differs; others stand below one another.
        const both = await drawn(text, "compare", other, slices).catch(() => null);
        canvas.innerHTML = both ?? (await drawn(text, picture, undefined, slices)) + (await drawn(other, picture));
      } else canvas.innerHTML = (await drawn(text, picture, undefined, slices)) + (other ? await drawn(other, picture) : "");
      cells.found();
    } catch (error) {
      fill(canvas, failure(error));
    }
  }
  redrawn(canvas, () => draw());
  async function compare() {
    const asked = other;
    fill(verdict);
    compared = "";
    if (!asked) return draw();
    try {
      const { relation, clauses } = await json<Compared>("compare", text, asked);
      if (asked !== other) return;
      fill(verdict, el("p", {}, el("strong", {}, `${relation}: `), `${clauses.join("; ")}.`));
      compared = asked;
    } catch (error) {
      // The picture of the first stays.
      return asked === other ? fill(verdict, failure(error, asked)) : undefined;
    }
    await draw();
  }

  let at = 0;
  for (const part of shown.parts) {
    notation.append(shown.shape.slice(at, part.start));
    const say = () => {
      meaning.textContent = `${shown.shape.slice(part.start, part.end)}: ${part.meaning}`;
      cells.light(part.kind === "tile" ? tileOf(part) : null);
    };
    const leave = () => {
      meaning.textContent = meant(shown);
      cells.light(null);
    };
    notation.append(el("button", { type: "button", onpointerenter: say, onfocus: say, onclick: say, onpointerleave: leave, onblur: leave }, shown.shape.slice(part.start, part.end)));
    at = part.end;
  }
  notation.append(shown.shape.slice(at));

  const second = el("input", { class: "mono", value: other, placeholder: "another layout of the same array", "aria-label": "Another layout to compare with" });
  second.addEventListener("input", () => {
    other = second.value.trim();
    options.changed({ other, picture });
    void compare();
  });
  const save = (run: (button: HTMLElement, svg: string) => unknown) => (event: Event) => run(event.currentTarget as HTMLElement, canvas.innerHTML);
  const actions = el(
    "div",
    { class: "actions" },
    el("button", { type: "button", onclick: save((button, svg) => copy(button, svg)) }, "Copy SVG"),
    el("button", { type: "button", onclick: save(async (button, svg) => copy(button, await toPng(svg))) }, "Copy PNG"),
    el("button", { type: "button", onclick: save((_, svg) => download("layout.svg", new Blob([svg], { type: "image/svg+xml" }))) }, "Save SVG"),
  );
  const pictures = tabs("Picture", PICTURES, picture, (id) => {
    picture = id;
    options.changed({ other, picture });
    void draw();
  });
  const sliders = slicePanel(shown, (chosen) => {
    slices = chosen;
    void draw();
  });
  const generations = await json<Generation[]>("generations");
  if (shown.physical_dimensions) {
    await draw();
    if (other) await compare();
  }
  const first = await firstSteps(text, shown);
  const open = await predicted(text, shown, generations, options.open);
  return el(
    "article",
    { class: "shape" },
    notation,
    meaning,
    open,
    facts(shown),
    first,
    el(
      "div",
      { class: "two" },
      el("div", {}, shown.physical_dimensions && [el("div", { class: "row" }, pictures, actions), sliders, place, canvas], stepsPanel(text, shown)),
      el("aside", { "aria-label": "Other layouts" }, el("div", { class: "panel" }, el("h2", {}, "Side by side"), second, verdict), shown.physical_dimensions && tpuPanel(shown, generations, options.open)),
    ),
  );
}

/// Cells of an array whose steps are drawn first.
const SMALL = 64;

/// The steps from a small array to its buffer, drawn: where tiles are understood at once.
async function firstSteps(text: string, { physical_dimensions, physical_bytes, logical_bytes, dimensions }: Shown): Promise<HTMLElement | null> {
  const cells = dimensions.reduce((product, bound) => product * bound, 1);
  const isTiled = (physical_dimensions?.length ?? 0) > dimensions.length;
  if (!isTiled || cells > SMALL || physical_bytes > 4 * Math.max(logical_bytes, 1)) return null;
  const picture = el("div", { class: "picture" });
  const draw = async () => void (picture.innerHTML = await drawn(text, "steps").catch(() => ""));
  redrawn(picture, draw);
  await draw();
  return el("section", { "aria-label": "Step by step" }, el("h2", {}, "Step by step: padded, cut into tiles, one after the other"), picture);
}

/// A shape without a layout has the default one, which no TPU gives it: what a TPU makes of it, to be chosen.
async function predicted(text: string, { dimensions, element_type }: Shown, generations: Generation[], open: (shape: string) => void): Promise<HTMLElement | null> {
  if (text.includes("{") || !dimensions.length) return null;
  const newest = generations.find(({ name }) => name === "v5e") ?? generations.at(-1);
  if (!newest) return null;
  const answer = await json<{ shape: string; physical_bytes?: number; padding_bytes?: number }>("predict", element_type, Uint32Array.from(dimensions), newest.name).catch(() => null);
  if (!answer) return null;
  const padding = answer.padding_bytes ? `, with ${bytes(answer.padding_bytes)} padding` : "";
  return el("p", { class: "warning" }, "No layout is given, and XLA’s default is shown, row by row without tiles: no TPU lays an array out so. A TPU ", newest.name, " takes ", el("button", { type: "button", class: "link", onclick: () => open(answer.shape) }, el("code", {}, answer.shape)), `${padding}.`);
}

/// The meaning of the order and the tiles, before anything is pointed at.
const meant = ({ parts }: Shown): string => parts.filter(({ kind }) => kind === "order" || kind === "tile").map(({ meaning }) => meaning).join("; ");

const HINT = "Rest the pointer on a cell, or use the arrow keys: where its element lies.";

function facts(shown: Shown): HTMLElement {
  if (!shown.physical_dimensions) return el("p", { class: "muted" }, `No sizes: ${shown.sizes_unavailable?.message ?? ""}.`);
  const fact = (name: string, value: string) => el("span", {}, el("span", { class: "muted" }, `${name} `), el("b", {}, value));
  return el(
    "div",
    {},
    el(
      "div",
      { class: "facts" },
      fact("data", bytes(shown.logical_bytes)),
      fact("in memory", bytes(shown.physical_bytes)),
      fact("padding", shown.padding_bytes > 0 ? `${bytes(shown.padding_bytes)}, ${percent(shown.padding_bytes, shown.physical_bytes)}` : "none"),
      shown.padding_bytes > 0 && fact("expansion", `${shown.expansion.toFixed(2)}×`),
      fact("physical", `[${shown.physical_dimensions.join(",")}]`),
      fact("in", shown.memory_space_name.toUpperCase()),
    ),
    shown.padding_bytes > 0 && el("div", { class: "budget", role: "img", "aria-label": `${percent(shown.logical_bytes, shown.physical_bytes)} of the memory is data` }, el("span", { style: `width:${(100 * shown.logical_bytes) / shown.physical_bytes}%;background:var(--tile-0)` }), el("span", { class: "hatched", style: "flex:1" })),
    shown.causes.length > 0 && el("p", {}, `${shown.causes.join("; ")}.`),
  );
}

/// Which tile of this level a cell is in; null for a level that the cells don't tell.
function tileOf({ number, elements }: Part): ((cell: SVGElement) => string | undefined) | null {
  if (number === 0) return (cell) => cell.dataset["tile"];
  return elements === null ? null : ({ dataset }) => dataset["offset"] && String(Math.floor(Number(dataset["offset"]) / elements));
}

/// Sliders for dimensions that the picture doesn't show.
function slicePanel({ physical_dimensions, dimensions, minor_to_major }: Shown, changed: (slices: number[]) => void): HTMLElement | null {
  if (!physical_dimensions || dimensions.length < 3) return null;
  const hidden = dimensions.map((_, k) => k).filter((k) => !minor_to_major.slice(0, 2).includes(k) && (dimensions[k] ?? 0) > 1);
  const at = new Map(hidden.map((k) => [k, 0]));
  return el(
    "div",
    { class: "panel", style: "margin-top:8px" },
    hidden.map((k) => {
      const value = el("span", { class: "number" }, `0 of ${grouped(dimensions[k] ?? 0)}`);
      const move = (event: Event) => {
        const index = Number((event.target as HTMLInputElement).value);
        at.set(k, index);
        value.textContent = `${grouped(index)} of ${grouped(dimensions[k] ?? 0)}`;
        changed([...at].flat());
      };
      return el("label", {}, `dimension ${k}`, el("input", { type: "range", min: 0, max: (dimensions[k] ?? 1) - 1, value: 0, oninput: move }), value);
    }),
  );
}

function stepsPanel(text: string, { physical_dimensions }: Shown): HTMLElement | null {
  if (!physical_dimensions) return null;
  const output = el("pre", { tabindex: "0" });
  const show = async (language: string) => {
    output.textContent = await ask("steps", text, language).catch(String);
  };
  const button = el("button", { type: "button", onclick: () => copy(button, output.textContent ?? "") }, "Copy");
  void show("text");
  return el("section", { "aria-label": "Steps" }, el("div", { class: "row" }, el("h2", {}, "Pad, reshape, transpose: from the array to its buffer"), tabs("Language", LANGUAGES, "text", show)), el("div", { class: "code" }, output, button));
}

async function tupleView(shown: Shown, options: ShapeOptions): Promise<HTMLElement> {
  const leaves = shown.leaves ?? [];
  const picture = el("div", { class: "picture" });
  const draw = async () => void (picture.innerHTML = await drawn(shown.shape).catch(() => ""));
  redrawn(picture, draw);
  await draw();
  return el(
    "article",
    { class: "shape" },
    el("h1", { class: "notation" }, shown.shape),
    el("p", { class: "muted" }, `A tuple of ${leaves.length} ${leaves.length === 1 ? "leaf" : "leaves"}; choose one.`),
    el("ul", {}, leaves.map(({ shape_index, shape }) => el("li", {}, `${shape_index.join(".")}: `, el("button", { type: "button", class: "link", onclick: () => options.open(shape) }, el("code", {}, shape))))),
    picture,
  );
}

/// The cells of a picture: they know their element and their place in memory.
class Cells {
  private all: SVGElement[] = [];
  private here: SVGElement | null = null;
  private asked = 0;

  constructor(
    private readonly canvas: HTMLElement,
    private readonly place: HTMLElement,
    private readonly text: string,
  ) {
    const under = (event: Event) => {
      const cell = (event.target as Element).closest<SVGElement>("[data-offset],[data-index],[data-padding]");
      if (cell !== this.here && (!cell || this.all.includes(cell))) this.go(cell);
    };
    canvas.addEventListener("pointermove", under);
    // A tap moves nothing.
    canvas.addEventListener("click", under);
    canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.go(null));
    canvas.addEventListener("keydown", (event) => {
      const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
      if (!dx && !dy) return;
      event.preventDefault();
      this.go(this.here ? (this.neighbour(this.here, dx!, dy!) ?? this.here) : (this.all[0] ?? null));
    });
    canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && !this.here && this.go(this.all[0] ?? null));
  }

  /// Looks for the cells of a picture that has just been drawn.
  found(): void {
    // Those of a second layout, in a picture of its own, are only looked at.
    const [first] = this.canvas.querySelectorAll("svg");
    this.all = [...(first ?? this.canvas).querySelectorAll<SVGElement>("[data-offset],[data-index],[data-padding]")];
    this.here = null;
  }

  /// Lights the tile that the cell under the pointer is in, or the first; null lights all.
  light(tile: ((cell: SVGElement) => string | undefined) | null): void {
    this.canvas.querySelector("svg")?.classList.toggle("lit", tile !== null);
    if (!tile) return;
    const chosen = [this.here, ...this.all].find((cell) => cell && tile(cell) !== undefined);
    const lit = chosen && tile(chosen);
    for (const cell of this.all) cell.classList.toggle("same", tile(cell) === lit);
  }

  private go(cell: SVGElement | null): void {
    for (const marked of this.canvas.querySelectorAll(".here")) marked.classList.remove("here");
    this.here = cell;
    if (!cell) return fill(this.place, HINT);
    const { offset, index, padding } = cell.dataset;
    // Both pictures of the same element, in the array and in memory.
    for (const same of this.all) if (same === cell || (offset !== undefined && same.dataset["offset"] === offset)) same.classList.add("here");
    void this.say(offset, index, padding);
  }

  private async say(offset: string | undefined, index: string | undefined, padding: string | undefined): Promise<void> {
    const asked = ++this.asked;
    const numbers = index ? new Uint32Array(index.split(",").map(Number)) : undefined;
    if (offset === undefined && (padding !== undefined || numbers === undefined)) return fill(this.place, "Padding: no element lies here.");
    const place = await json<Place>("place", this.text, offset === undefined ? numbers : undefined, offset === undefined ? undefined : BigInt(offset)).catch(() => null);
    if (!place || asked !== this.asked) return;
    const at = place.index ? `Element [${place.index.join(",")}]` : `Padding: no element lies here`;
    const bit = place.bits % 8 ? `, bit ${place.bit}` : "";
    const mates = place.word.map((mate) => `[${mate.join(",")}]`);
    fill(
      this.place,
      el("strong", {}, at),
      ` · offset ${grouped(place.linear_index)} · byte ${grouped(place.byte)}${bit} · physical index [${place.physical_index?.join(",") ?? "behind the tiles"}]`,
      mates.length > 1 && el("br"),
      mates.length > 1 && `Its 32-bit word holds ${mates.join(" ")}.`,
    );
  }

  /// The nearest cell in a direction, in the same part of the picture.
  private neighbour(from: SVGElement, dx: number, dy: number): SVGElement | null {
    const middle = (cell: SVGElement) => {
      const box = cell.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2] as const;
    };
    const [x, y] = middle(from);
    let [best, least]: [SVGElement | null, number] = [null, Infinity];
    for (const cell of this.all) {
      const [cx, cy] = middle(cell);
      const [along, across] = [(cx - x) * dx + (cy - y) * dy, Math.abs((cx - x) * dy) + Math.abs((cy - y) * dx)];
      if (along < 1) continue;
      const distance = along + 8 * across;
      if (distance < least) [best, least] = [cell, distance];
    }
    return best;
  }
}
