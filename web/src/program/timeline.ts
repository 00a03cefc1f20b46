// Memory over the program's order, and below it where each allocation lies: a canvas that the pointer and the arrow keys
// move along.

import { bytes, copy, el, grouped, shortPath } from "../dom";
import { COLORED, names, type Timeline } from "./data";

/// The kinds of bands: what stands, those with a colour, all others.
const BANDS = COLORED + 2;
const OTHER = BANDS - 1;
const LEFT = 68;
const TOP = 18;

/// Bytes alive at every moment, by band, and how many of them are padding.
class Profile {
  readonly moments: number;
  private readonly alive: Float64Array[];
  private readonly padding: Float64Array[];
  readonly total: Float64Array;

  /// `band` has the band of each owner.
  constructor(timeline: Timeline, band: number[]) {
    this.moments = Math.max(timeline.moments, 1);
    const zeros = () => Array.from({ length: BANDS }, () => new Float64Array(this.moments + 1));
    [this.alive, this.padding] = [zeros(), zeros()];
    const { owner, bytes, padding, first, last } = timeline.pieces;
    for (let piece = 0; piece < first.length; piece++) {
      const from = Math.min(first[piece]!, this.moments - 1);
      const to = Math.min(last[piece]! + 1, this.moments);
      const number = band[owner[piece]!] ?? OTHER;
      step(this.alive[number]!, from, to, bytes[piece]!);
      if (padding[piece]! > 0) step(this.padding[number]!, from, to, padding[piece]!);
    }
    const used = new Set(band);
    for (const number of used) for (const steps of [this.alive[number]!, this.padding[number]!]) accumulate(steps);
    this.alive[0]!.fill(timeline.resident_bytes);
    this.total = this.alive[0]!.slice();
    for (const number of used) add(this.total, this.alive[number]!);
  }

  /// The fullest moment of a range, its end exclusive: a column of pixels never misses the peak.
  fullest(from: number, to: number): number {
    let best = from;
    for (let moment = from + 1; moment < to; moment++) if (this.total[moment]! > this.total[best]!) best = moment;
    return best;
  }

  bands(moment: number): { alive: number; padding: number }[] {
    return this.alive.map((steps, band) => ({ alive: steps[moment]!, padding: this.padding[band]![moment]! }));
  }
}

function step(steps: Float64Array, from: number, to: number, amount: number): void {
  steps[from]! += amount;
  steps[to]! -= amount;
}

function accumulate(steps: Float64Array): void {
  for (let moment = 1, sum = steps[0]!; moment < steps.length; moment++) steps[moment] = sum += steps[moment]!;
}

function add(to: Float64Array, steps: Float64Array): void {
  for (let moment = 0; moment < to.length; moment++) to[moment]! += steps[moment]!;
}

export interface TimelineView {
  element: HTMLElement;
  /// Marks a moment, and says so to `moved`.
  show(moment: number): void;
  redraw(): void;
}

/// The picture of a timeline; `moved` hears of the moment under the pointer or the keys.
export function timelineView(
  timeline: Timeline,
  colors: Map<string, number>,
  limit: number | null,
  moved: (moment: number) => void,
): TimelineView {
  const bandOf = timeline.owners.map((owner) => {
    const color = colors.get(owner);
    return color === undefined ? OTHER : color + 1;
  });
  const profile = new Profile(timeline, bandOf);
  const last = profile.moments - 1;
  const peak = timeline.peak_moment ?? profile.fullest(0, profile.moments);
  const most = profile.total[profile.fullest(0, profile.moments)]!;
  const heap = timeline.pieces.offset.reduce((top, offset, piece) => Math.max(top, offset + timeline.pieces.bytes[piece]! || 0), 0);
  const apart = timeline.pieces.offset.filter((offset) => Number.isNaN(offset)).length;
  let pinned = peak;
  let shown = peak;
  /// The moments that are drawn, the end exclusive.
  let range: [number, number] = [0, profile.moments];

  const picture = el("canvas", { "aria-hidden": "true" });
  const cursor = el("canvas", { class: "cursor", "aria-hidden": "true" });
  const frame = el(
    "div",
    {
      class: "timeline",
      role: "slider",
      tabindex: "0",
      "aria-label": "Moment in the program's order",
      "aria-valuemin": "1",
      "aria-valuemax": profile.moments,
      "aria-orientation": "horizontal",
    },
    picture,
    cursor,
  );
  const zoom = (title: string, label: string, run: () => void) =>
    el("button", { type: "button", "aria-label": label, title: label, onclick: run }, title);
  const copyButton = el("button", { type: "button", onclick: () => picture.toBlob((png) => png && void copy(copyButton, png)) }, "Copy PNG");
  const buttons = el(
    "div",
    { class: "tabs", role: "group", "aria-label": "Zoom" },
    zoom("+", "Nearer", () => scale(0.5)),
    zoom("−", "Farther", () => scale(2)),
    zoom("All", "The whole program", () => ((range = [0, profile.moments]), redraw())),
    zoom("Peak", "To the peak", () => pin(peak)),
    copyButton,
  );
  const element = el(
    "div",
    {},
    frame,
    el("div", { class: "row muted" }, "Move the pointer or ← → along the program; click keeps a moment, p is the peak.", buttons),
    heap > 0 && apart > 0 && el("p", { class: "muted" }, apart === 1 ? "1 allocation lies apart, and isn't among those drawn by address." : `${apart} allocations lie apart, and aren't among those drawn by address.`),
  );

  // Both parts share the horizontal axis.
  const size = () => {
    const [width, height] = [frame.clientWidth, frame.clientHeight];
    const area = Math.round((height - TOP - 30) * (heap > 0 ? 0.56 : 1));
    return { width, height, plot: width - LEFT - 10, area, heapTop: TOP + area + 26, heapHeight: height - TOP - area - 30 };
  };
  const x = (moment: number, plot = size().plot) => LEFT + ((moment - range[0]) / (range[1] - range[0])) * plot;
  const momentAt = (at: number) => {
    const moment = range[0] + ((at - LEFT) / size().plot) * (range[1] - range[0]);
    return Math.min(Math.max(Math.floor(moment), 0), last);
  };

  function context(canvas: HTMLCanvasElement): CanvasRenderingContext2D | null {
    const { width, height } = size();
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const drawing = canvas.getContext("2d");
    drawing?.scale(ratio, ratio);
    if (drawing) drawing.font = `11px ${getComputedStyle(frame).fontFamily}`;
    return drawing;
  }

  function redraw() {
    const { width, plot, area, heapTop, heapHeight } = size();
    const drawing = width > 0 ? context(picture) : null;
    if (!drawing) return;
    const style = getComputedStyle(frame);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const fills = ["--resident", ...Array.from({ length: COLORED }, (_, k) => `--tile-${k}`), "--other"].map(color);
    const hatch = hatching(drawing, color("--hatching"));
    const scaleTop = Math.max(most, limit !== null && limit < 2 * most ? limit : 0) * 1.04 || 1;
    const y = (amount: number) => TOP + area - (amount / scaleTop) * area;

    drawing.fillStyle = color("--background");
    drawing.fillRect(0, 0, width, size().height);
    drawing.textBaseline = "middle";
    drawing.textAlign = "right";
    for (const tick of ticks(scaleTop, 4)) {
      drawing.fillStyle = color("--line");
      drawing.fillRect(LEFT, Math.round(y(tick)), plot, 1);
      drawing.fillStyle = color("--muted");
      drawing.fillText(round(tick), LEFT - 6, y(tick));
    }
    const columns = Math.max(1, Math.floor(plot));
    const span = range[1] - range[0];
    for (let column = 0; column < columns; ) {
      const from = range[0] + Math.floor((column * span) / columns);
      // Columns of the same moment are one rectangle.
      let end = column + 1;
      while (end < columns && range[0] + Math.floor((end * span) / columns) === from) end++;
      const to = Math.max(from + 1, range[0] + Math.floor((end * span) / columns));
      let below = 0;
      profile.bands(profile.fullest(from, to)).forEach(({ alive, padding }, band) => {
        if (alive <= 0) return;
        drawing.fillStyle = fills[band]!;
        drawing.fillRect(LEFT + column, y(below + alive), end - column + 0.5, y(below) - y(below + alive));
        if (padding > 0) {
          drawing.fillStyle = hatch;
          drawing.fillRect(LEFT + column, y(below + alive), end - column + 0.5, y(below + alive - padding) - y(below + alive));
        }
        below += alive;
      });
      column = end;
    }
    if (limit !== null && limit <= scaleTop) {
      drawing.fillStyle = color("--accent");
      drawing.fillRect(LEFT, y(limit), plot, 1.5);
      drawing.textAlign = "left";
      drawing.fillText(`${bytes(limit)} there are`, LEFT + 4, y(limit) - 8);
    }
    if (peak >= range[0] && peak < range[1]) {
      const at = (x(peak) + x(peak + 1)) / 2;
      drawing.fillStyle = color("--accent");
      drawing.fillRect(at - 0.75, TOP - 4, 1.5, area + 4);
      drawing.textAlign = at > LEFT + plot * 0.6 ? "right" : "left";
      drawing.fillText(`peak ${bytes(most)}, step ${grouped(peak + 1)}`, at + (at > LEFT + plot * 0.6 ? -5 : 5), TOP - 9);
    }
    drawing.fillStyle = color("--muted");
    drawing.textAlign = "left";
    drawing.fillText(`step ${grouped(range[0] + 1)}`, LEFT, TOP + area + 10);
    drawing.textAlign = "right";
    drawing.fillText(grouped(range[1]), LEFT + plot, TOP + area + 10);
    if (heap <= 0) return;
    drawing.textAlign = "right";
    for (const tick of ticks(heap, 2)) drawing.fillText(round(tick), LEFT - 6, heapTop + (tick / heap) * heapHeight);
    drawing.fillText("address", LEFT - 6, heapTop + 4);
    drawing.strokeStyle = color("--background");
    drawing.lineWidth = 1;
    drawing.save();
    drawing.beginPath();
    drawing.rect(LEFT, heapTop, plot, heapHeight);
    drawing.clip();
    const { owner, offset, bytes: amount, padding, first, last: until } = timeline.pieces;
    // How tall the tallest is that begins in a pixel and is no wider: a hundred thousand are drawn as what is seen.
    const narrow = new Float32Array(Math.ceil(plot) * Math.ceil(heapHeight + 1));
    for (let piece = 0; piece < first.length; piece++) {
      if (Number.isNaN(offset[piece]!) || until[piece]! < range[0] || first[piece]! >= range[1]) continue;
      const [from, to] = [x(first[piece]!, plot), x(until[piece]! + 1, plot)];
      const [above, tall] = [heapTop + (offset[piece]! / heap) * heapHeight, (amount[piece]! / heap) * heapHeight];
      if (tall < 0.25) continue;
      if (to - from < 1) {
        const pixel = Math.floor(above - heapTop) * Math.ceil(plot) + Math.floor(from - LEFT);
        if (narrow[pixel]! >= tall) continue;
        narrow[pixel] = tall;
      }
      drawing.fillStyle = fills[bandOf[owner[piece]!] ?? OTHER]!;
      drawing.fillRect(from, above, Math.max(to - from, 0.6), Math.max(tall, 0.6));
      if (padding[piece]! > 0 && tall > 2 && to - from > 2) {
        drawing.fillStyle = hatch;
        const share = (padding[piece]! / amount[piece]!) * tall;
        drawing.fillRect(from, above + tall - share, to - from, share);
      }
      if (tall > 3 && to - from > 3) drawing.strokeRect(from, above, to - from, tall);
      if (tall <= 13) continue;
      const name = names(timeline.pieces)[piece] ?? "";
      if (to - from > 7 * name.length) {
        drawing.fillStyle = color("--on-tile");
        drawing.textAlign = "left";
        drawing.fillText(name, Math.max(from, LEFT) + 5, above + Math.min(tall / 2, 12));
      }
    }
    drawing.restore();
    mark();
  }

  function mark() {
    const drawing = context(cursor);
    if (!drawing) return;
    const { heapTop, heapHeight, area } = size();
    const bottom = heap > 0 ? heapTop + heapHeight : TOP + area;
    drawing.fillStyle = getComputedStyle(frame).getPropertyValue("--text").trim();
    const [from, to] = [x(shown), x(shown + 1)];
    drawing.globalAlpha = 0.16;
    if (to - from > 3) drawing.fillRect(from, TOP, to - from, bottom - TOP);
    drawing.globalAlpha = 1;
    drawing.fillRect((from + to) / 2 - 0.5, TOP, 1, bottom - TOP);
  }

  function describe() {
    frame.setAttribute("aria-valuenow", String(shown + 1));
    const owner = shortPath(timeline.owners[timeline.order_owners[shown] ?? -1] ?? "");
    frame.setAttribute("aria-valuetext", `step ${shown + 1}, ${names(timeline)[shown] ?? ""}, ${owner}: ${bytes(profile.total[shown]!)}`);
  }
  function show(moment: number) {
    shown = Math.min(Math.max(moment, 0), last);
    describe();
    if (shown < range[0] || shown >= range[1]) {
      const span = range[1] - range[0];
      const from = Math.min(Math.max(0, shown - Math.floor(span / 2)), profile.moments - span);
      range = [from, from + span];
      redraw();
    } else mark();
    moved(shown);
  }
  function pin(moment: number) {
    pinned = Math.min(Math.max(moment, 0), last);
    show(pinned);
  }
  function scale(factor: number) {
    const span = Math.min(Math.max(Math.round((range[1] - range[0]) * factor), 8), profile.moments);
    const from = Math.min(Math.max(0, shown - Math.floor(span / 2)), profile.moments - span);
    range = [from, from + span];
    redraw();
  }

  const keys: Record<string, () => void> = {
    ArrowLeft: () => pin(shown - 1),
    ArrowRight: () => pin(shown + 1),
    ArrowDown: () => pin(shown - 1),
    ArrowUp: () => pin(shown + 1),
    PageUp: () => pin(shown + Math.ceil((range[1] - range[0]) / 10)),
    PageDown: () => pin(shown - Math.ceil((range[1] - range[0]) / 10)),
    Home: () => pin(0),
    End: () => pin(last),
    p: () => pin(peak),
    "+": () => scale(0.5),
    "-": () => scale(2),
  };
  frame.addEventListener("keydown", (event) => {
    const key = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!key) return;
    event.preventDefault();
    key();
  });
  const under = (event: PointerEvent) => momentAt(event.clientX - frame.getBoundingClientRect().left);
  frame.addEventListener("pointermove", (event) => under(event) !== shown && show(under(event)));
  frame.addEventListener("pointerleave", () => shown !== pinned && show(pinned));
  frame.addEventListener("pointerdown", (event) => pin(under(event)));
  describe();
  new ResizeObserver(redraw).observe(frame);
  return { element, show: pin, redraw };
}

/// About so many round amounts up to a largest.
function ticks(largest: number, about: number): number[] {
  let step = 1;
  while (largest / step > about * 2) step *= 2;
  while (step > 1 && largest / step < about) step /= 2;
  return Array.from({ length: Math.floor(largest / step) }, (_, k) => (k + 1) * step);
}

/// A round amount without its zeros.
function round(amount: number): string {
  return bytes(amount).replace(/\.00 /, " ").replace(/(\.\d)0 /, "$1 ");
}

function hatching(drawing: CanvasRenderingContext2D, color: string): CanvasPattern | string {
  const tile = el("canvas", { width: 6, height: 6 });
  const lines = tile.getContext("2d");
  if (!lines) return "transparent";
  lines.strokeStyle = color;
  lines.lineWidth = 1.3;
  for (const shift of [-6, 0, 6]) {
    lines.beginPath();
    lines.moveTo(shift - 1, 7);
    lines.lineTo(shift + 7, -1);
    lines.stroke();
  }
  return drawing.createPattern(tile, "repeat") ?? "transparent";
}
