// Memory over the program's order, and below it where each allocation lies: a canvas that the pointer and the keys move
// along, nearer and farther.

import { bytes, copy, el, fill, grouped, percent, redrawn } from "../dom";
import { Axis, duration, type Width } from "./axis";
import type { Bands } from "./bands";
import { names, type Remark, type Timeline } from "./data";
import { minimap } from "./minimap";
import { LEFT, Picture } from "./picture";
import { selection } from "./selection";

export interface TimelineView {
  element: HTMLElement;
  /// Marks a moment, and says so to `moved`.
  show(moment: number): void;
  /// Marks a piece, or none.
  mark(piece: number | null): void;
}

export interface TimelineOptions {
  timeline: Timeline;
  bands: Bands;
  /// Bytes that there are, and that the program holds all along, gaps included.
  limit: number | null;
  held: number | null;
  width: Width;
  /// The events between two moments; without it nothing is selected.
  spans: ((first: number, last: number) => Promise<Remark[]>) | undefined;
  /// Hears of the moment under the pointer or the keys.
  moved: (moment: number) => void;
  /// Hears of the piece that was clicked.
  chosen: (piece: number) => void;
}

/// Of what is drawn, the part that the peak has once it is looked at.
const PEAKS_PART = 0.2;
/// Units that the pointer moves before it drags.
const DRAG = 4;

export function timelineView({ timeline, bands, limit, held, width, spans, moved, chosen }: TimelineOptions): TimelineView {
  const timed = timeline.seconds.length > 0 ? new Axis(timeline.moments, timeline.seconds) : null;
  const axis = width === "time" && timed ? timed : new Axis(Math.max(timeline.moments, 1));
  const picture = new Picture(timeline, bands, axis, limit, held);
  const { profile, heap } = picture;
  const last = profile.moments - 1;
  const peak = timeline.peak_moment ?? profile.fullest(0, profile.moments);
  const apart = timeline.pieces.offset.filter((offset) => Number.isNaN(offset)).length;
  let pinned = peak;
  let shown = peak;
  let marked: number | null = null;
  /// The part of the axis that is drawn.
  let range: [number, number] = [0, axis.length];
  /// Moments that are selected, both included.
  let selected: [number, number] | null = null;

  const canvas = el("canvas", { "aria-hidden": "true" });
  const cursor = el("canvas", { class: "cursor", "aria-hidden": "true" });
  const tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const frame = el(
    "div",
    {
      class: picture.isFlat ? "timeline flat" : "timeline",
      role: "slider",
      tabindex: "0",
      "aria-label": "Moment in the program's order",
      "aria-valuemin": "1",
      "aria-valuemax": profile.moments,
      "aria-orientation": "horizontal",
    },
    canvas,
    cursor,
    tip,
  );
  const button = (title: string, label: string, run: () => void) => el("button", { type: "button", "aria-label": label, title: label, onclick: run }, title);
  const copyButton = el("button", { type: "button", onclick: () => canvas.toBlob((png) => png && void copy(copyButton, png)) }, "Copy PNG");
  const buttons = el(
    "div",
    { class: "tabs", role: "group", "aria-label": "Zoom" },
    button("+", "Nearer", () => zoom(0.5)),
    button("−", "Farther", () => zoom(2)),
    button("All", "The whole program", () => look([0, axis.length])),
    button("Peak", "To the peak", () => toPeak()),
    copyButton,
  );
  const whole = minimap(profile, axis, (place) => look([place - (range[1] - range[0]) / 2, place + (range[1] - range[0]) / 2]));
  const sums = selection(spans, () => select(null));
  const element = el(
    "div",
    {},
    frame,
    el("div", { class: "row muted hint" }, `← → or point: a moment. Click: keep it. W S: zoom. A D or drag: pan. ${spans ? "Shift and drag: sums of a part. " : ""}P: the peak.`, buttons),
    // Below the buttons, which it doesn't move when it comes.
    whole.element,
    sums.element,
    heap > 0 && apart > 0 && el("p", { class: "muted" }, apart === 1 ? "1 allocation lies apart, and isn't among those drawn by address." : `${grouped(apart)} allocations lie apart, and aren't among those drawn by address.`),
  );

  const places = () => picture.places(frame.clientWidth, frame.clientHeight);
  const x = (moment: number) => LEFT + ((axis.at(moment) - range[0]) / (range[1] - range[0])) * places().plot;
  /// The place on the axis under the pointer, and the moment there.
  const exact = (clientX: number) => range[0] + ((clientX - frame.getBoundingClientRect().left - LEFT) / places().plot) * (range[1] - range[0]);
  const under = (clientX: number) => axis.moment(Math.min(Math.max(exact(clientX), range[0]), range[1]));
  /// The piece under the pointer.
  const hit = (event: PointerEvent) => {
    const { heapTop, heapHeight } = places();
    const share = 1 - (event.clientY - frame.getBoundingClientRect().top - heapTop) / heapHeight;
    return heap > 0 && share >= 0 && share < 1 ? picture.at(under(event.clientX), share * heap) : null;
  };

  function context(of: HTMLCanvasElement): CanvasRenderingContext2D | null {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.round(frame.clientWidth * ratio), Math.round(frame.clientHeight * ratio)];
    if (width <= 0 || height <= 0) return null;
    // A new size takes a new image.
    if (of.width !== width || of.height !== height) [of.width, of.height] = [width, height];
    const drawing = of.getContext("2d");
    drawing?.setTransform(ratio, 0, 0, ratio, 0, 0);
    return drawing;
  }
  let pending = 0;
  function draw() {
    const drawing = context(canvas);
    if (!drawing) return;
    picture.draw(drawing, frame, devicePixelRatio || 1, range, peak);
    point();
  }
  function redraw() {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(draw);
  }
  /// The moment that is shown, and the piece that is chosen.
  function point() {
    const drawing = context(cursor);
    if (!drawing) return;
    const { heapTop, heapHeight, area, top } = places();
    drawing.clearRect(0, 0, frame.clientWidth, frame.clientHeight);
    const bottom = heap > 0 ? heapTop + heapHeight : top + area;
    drawing.fillStyle = drawing.strokeStyle = getComputedStyle(frame).getPropertyValue("--text").trim();
    const [from, to] = [Math.max(x(shown), LEFT), Math.min(x(shown + 1), LEFT + places().plot)];
    if (selected) {
      const [left, right] = [Math.max(x(selected[0]), LEFT), Math.min(x(selected[1] + 1), LEFT + places().plot)];
      drawing.globalAlpha = 0.12;
      if (right > left) drawing.fillRect(left, top, right - left, bottom - top);
      drawing.globalAlpha = 1;
    }
    if (to >= from) {
      drawing.globalAlpha = 0.16;
      if (to - from > 3) drawing.fillRect(from, top, to - from, bottom - top);
      drawing.globalAlpha = 1;
      drawing.fillRect((from + to) / 2 - 0.5, top, 1, bottom - top);
    }
    if (marked === null) return;
    const { left, right, top: upper, bottom: lower } = picture.box(marked, range, places());
    // When it is alive, and where it lies.
    drawing.fillRect(left, top + area, Math.max(right - left, 1), 3);
    drawing.lineWidth = 2;
    if (!Number.isNaN(upper)) drawing.strokeRect(left, upper, Math.max(right - left, 2), Math.max(lower - upper, 2));
  }
  function describe() {
    frame.setAttribute("aria-valuenow", String(shown + 1));
    const owner = timeline.owner_names[timeline.order_owners[shown] ?? -1] ?? "";
    frame.setAttribute("aria-valuetext", `step ${shown + 1}, ${names(timeline)[shown] ?? ""}, ${owner}: ${bytes(profile.total[shown]!)}`);
  }
  /// The tip of a piece: [lines of code, lines of words].
  function ofPiece(piece: number): [string[], string[]] {
    const { owner, shape, bytes: amount, padding, first, last: until, offset } = timeline.pieces;
    const steps = `steps ${grouped(first[piece]! + 1)} to ${grouped(until[piece]! + 1)}`;
    return [
      [names(timeline.pieces)[piece] ?? "", timeline.shapes[shape[piece]!] ?? ""],
      [`${bytes(amount[piece]!)}, ${padding[piece]! > 0 ? `${bytes(padding[piece]!)} padding` : "no padding"}`, timeline.owner_names[owner[piece]!] ?? "", `${steps}, at byte ${grouped(offset[piece]!)}`],
    ];
  }
  /// The tip of a moment, with the owner under the pointer there.
  function ofMoment(moment: number, amount: number): [string[], string[]] {
    const holder = picture.holder(moment, amount);
    const seconds = timeline.seconds[moment] ?? 0;
    return [
      [names(timeline)[moment] ?? ""],
      [
        holder ? `${holder.name}: ${bytes(holder.bytes)}${holder.padding > 0 ? `, ${percent(holder.padding, holder.bytes)} padding` : ""}` : "",
        timeline.owner_names[timeline.order_owners[moment] ?? -1] ?? "",
        `step ${grouped(moment + 1)}: ${bytes(profile.total[moment]!)} in use, ${bytes(profile.data[moment]!)} without padding${seconds > 0 ? `, ${duration(seconds)} estimated` : ""}`,
      ],
    ];
  }
  /// Shows the tip of the place under the pointer.
  function explain(event: PointerEvent) {
    const piece = hit(event);
    const amount = picture.scale?.amount(event.clientY - frame.getBoundingClientRect().top) ?? null;
    tip.hidden = piece === null && amount === null;
    if (tip.hidden) return;
    const [code, words] = piece !== null ? ofPiece(piece) : ofMoment(under(event.clientX), amount!);
    fill(tip, code.filter(Boolean).map((line) => el("div", { class: "mono" }, line)), words.filter(Boolean).map((line) => el("div", {}, line)));
    const box = frame.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left, event.clientY - box.top];
    tip.style.left = `${Math.min(left + 12, Math.max(box.width - tip.offsetWidth, 0))}px`;
    tip.style.top = `${Math.max(top - tip.offsetHeight - 10, 10 - box.top)}px`;
  }

  function show(moment: number) {
    shown = Math.min(Math.max(moment, 0), last);
    describe();
    if (axis.at(shown + 1) <= range[0] || axis.at(shown) >= range[1]) {
      const span = range[1] - range[0];
      look([axis.at(shown) - span / 2, axis.at(shown) + span / 2]);
    } else point();
    moved(shown);
  }
  function pin(moment: number) {
    pinned = Math.min(Math.max(moment, 0), last);
    show(pinned);
  }
  /// Draws another part of the axis, as much as there is.
  function look([from, to]: [number, number]) {
    const span = Math.min(Math.max(to - from, axis.shortest), axis.length);
    const start = Math.min(Math.max(from, 0), axis.length - span);
    range = [start, start + span];
    whole.show(range);
    redraw();
  }
  /// Nearer or farther, a place staying where it is.
  function zoom(factor: number, about = (axis.at(shown) + axis.at(shown + 1)) / 2) {
    look([about - (about - range[0]) * factor, about + (range[1] - about) * factor]);
  }
  /// So near to the peak that it is wide, and the largest array there if that is short.
  function toPeak() {
    const { first, last: until, bytes: amount } = timeline.pieces;
    let largest = -1;
    for (let piece = 0; piece < first.length; piece++) if (first[piece]! <= peak && peak <= until[piece]! && (largest < 0 || amount[piece]! > amount[largest]!)) largest = piece;
    const [from, to] = largest < 0 ? [axis.at(peak), axis.at(peak + 1)] : [axis.at(first[largest]!), axis.at(until[largest]! + 1)];
    const span = Math.min((to - from) / PEAKS_PART, axis.length * PEAKS_PART);
    const middle = (Math.max(from, axis.at(peak) - span / 2) + Math.min(to, axis.at(peak + 1) + span / 2)) / 2;
    pin(peak);
    look([middle - span / 2, middle + span / 2]);
  }
  function select(next: [number, number] | null) {
    selected = next;
    sums.show(next);
    point();
  }
  const pan = (by: number) => look([range[0] + by, range[1] + by]);

  const keys: Record<string, () => void> = {
    ArrowLeft: () => pin(shown - 1),
    ArrowRight: () => pin(shown + 1),
    ArrowDown: () => pin(shown - 1),
    ArrowUp: () => pin(shown + 1),
    PageUp: () => pin(shown + Math.ceil(profile.moments / 10)),
    PageDown: () => pin(shown - Math.ceil(profile.moments / 10)),
    Home: () => pin(0),
    End: () => pin(last),
    p: () => pin(peak),
    "+": () => zoom(0.5),
    "-": () => zoom(2),
    w: () => zoom(0.7),
    s: () => zoom(1 / 0.7),
    a: () => pan(-(range[1] - range[0]) / 8),
    d: () => pan((range[1] - range[0]) / 8),
  };
  frame.addEventListener("keydown", (event) => {
    const key = event.ctrlKey || event.metaKey || event.altKey ? undefined : (keys[event.key] ?? keys[event.key.toLowerCase()]);
    if (event.key === "Escape" && selected) select(null);
    if (!key) return;
    event.preventDefault();
    key();
  });

  /// Where each pointer that is down was last.
  const down = new Map<number, PointerEvent>();
  let isDragged = false;
  frame.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, event);
    if (down.size === 1) isDragged = false;
  });
  frame.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) {
      if (under(event.clientX) !== shown) show(under(event.clientX));
      return explain(event);
    }
    if (!isDragged && down.size === 1 && Math.abs(event.clientX - before.clientX) < DRAG) return;
    if (!isDragged) frame.setPointerCapture(event.pointerId);
    isDragged = true;
    tip.hidden = true;
    if (spans && event.shiftKey && down.size === 1) {
      const [one, other] = [under(before.clientX), under(event.clientX)];
      return select([Math.min(one, other), Math.max(one, other)]);
    }
    const other = [...down.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    if (other) {
      const [was, is] = [before.clientX - other.clientX, event.clientX - other.clientX];
      if (Math.abs(is) > DRAG) zoom(Math.abs(was / is), exact(other.clientX));
    } else pan(exact(before.clientX) - exact(event.clientX));
    down.set(event.pointerId, event);
  });
  const up = (event: PointerEvent) => {
    if (!down.delete(event.pointerId) || isDragged || event.type !== "pointerup") return;
    pin(under(event.clientX));
    const piece = hit(event);
    if (piece !== null) chosen(piece);
  };
  for (const name of ["pointerup", "pointercancel"] as const) frame.addEventListener(name, up);
  frame.addEventListener("pointerleave", () => {
    tip.hidden = true;
    if (shown !== pinned) show(pinned);
  });
  frame.addEventListener(
    "wheel",
    (event) => {
      const isAcross = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      // The page's own scrolling stays, unless the picture has the focus.
      if (!isAcross && !event.ctrlKey && !event.metaKey && document.activeElement !== frame) return;
      event.preventDefault();
      if (isAcross) pan(((event.deltaX || event.deltaY) / places().plot) * (range[1] - range[0]));
      else zoom(Math.exp(event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), exact(event.clientX));
    },
    { passive: false },
  );
  describe();
  redrawn(element, () => {
    picture.restyle();
    draw();
  });
  new ResizeObserver(redraw).observe(frame);
  return {
    element,
    show: pin,
    mark(piece) {
      marked = piece;
      point();
    },
  };
}
