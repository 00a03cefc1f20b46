// The picture of a timeline: memory over the program's order, and below it where each allocation lies.

import { bytes, grouped } from "../dom";
import type { Axis } from "./axis";
import { TILES, type Bands } from "./bands";
import { names, type Timeline } from "./data";
import { Profile, round, rounded, Scale } from "./profile";
import { inks, Raster, type Ink } from "./raster";

export const LEFT = 76;
const RIGHT = 10;
const TOP = 34;
const BETWEEN = 44;
const BOTTOM = 6;
/// Allocations that take less together aren't drawn by address.
const LEAST_HEAP = 64 << 10;
/// A plot in which two labels don't fit beside each other.
const NARROW = 460;

/// Where the parts of the picture are.
export interface Places {
  width: number;
  height: number;
  plot: number;
  top: number;
  area: number;
  heapTop: number;
  heapHeight: number;
}

interface Look {
  /// Of lines.
  ink: Ink;
  tiles: Ink[];
  residents: Ink[];
  background: Ink;
  free: Ink;
  line: Ink;
  color: (name: string) => string;
  font: string;
}

export class Picture {
  readonly profile: Profile;
  /// The largest that is ever alive.
  readonly most: number;
  /// Where amounts are, as it was drawn last.
  scale: Scale | undefined;
  private readonly blocks: Blocks;
  private raster: Raster | undefined;
  private look: Look | undefined;

  constructor(
    private readonly timeline: Timeline,
    private readonly bands: Bands,
    private readonly axis: Axis,
    private readonly limit: number | null,
    /// The bytes that the program holds all along: gaps included.
    private readonly held: number | null,
  ) {
    this.profile = new Profile(timeline, bands.of, bands.count);
    this.most = this.profile.total[this.profile.fullest(0, this.profile.moments)]!;
    this.blocks = blocksOf(timeline, bands, axis);
  }

  /// The end of what lies by address.
  get heap(): number {
    return this.blocks.heap < LEAST_HEAP ? 0 : this.blocks.heap;
  }

  /// Whether what stands is nearly all: then there is little to be seen of the rest.
  get isFlat(): boolean {
    return this.heap === 0 && this.most < this.timeline.resident_bytes * 1.02;
  }

  /// The owner of byte `amount` of a moment, counted from the bottom: its name and bytes.
  holder(moment: number, amount: number): { name: string; bytes: number; padding: number } | null {
    let below = 0;
    for (const { name, bytes, padding_bytes } of this.timeline.residents) {
      if (amount < (below += bytes)) return { name, bytes, padding: padding_bytes };
    }
    let found: { name: string; bytes: number; padding: number } | null = null;
    this.profile.bands(moment, (band, bytes, padding) => {
      if (!found && amount < (below += bytes)) found = { name: this.bands.name(band), bytes, padding };
    });
    return found;
  }

  /// Colours are asked for again.
  restyle(): void {
    this.look = undefined;
  }

  places(width: number, height: number): Places {
    const area = Math.round((height - TOP - BETWEEN - BOTTOM) * (this.heap > 0 ? 0.56 : 1));
    return { width, height, plot: width - LEFT - RIGHT, top: TOP, area, heapTop: TOP + area + BETWEEN, heapHeight: height - TOP - area - BETWEEN - BOTTOM };
  }

  /// Where a piece lies, the range of the axis as wide as the plot.
  box(piece: number, [start, end]: [number, number], { plot, heapTop, heapHeight }: Places): { left: number; right: number; top: number; bottom: number } {
    const { first, last, offset, bytes } = this.timeline.pieces;
    const x = (moment: number) => LEFT + Math.min(Math.max((this.axis.at(moment) - start) / (end - start), 0), 1) * plot;
    // Addresses rise, as amounts do.
    const y = (address: number) => heapTop + heapHeight * (1 - address / this.heap);
    return { left: x(first[piece]!), right: x(last[piece]! + 1), top: y(offset[piece]! + bytes[piece]!), bottom: y(offset[piece]!) };
  }

  /// The piece that lies at an address at a moment.
  at(moment: number, address: number): number | null {
    const { piece, from, to } = this.blocks;
    const { first, last } = this.timeline.pieces;
    for (let k = 0; k < piece.length; k++) if (first[piece[k]!]! <= moment && moment <= last[piece[k]!]! && from[k]! <= address && address < to[k]!) return piece[k]!;
    return null;
  }

  draw(context: CanvasRenderingContext2D, frame: HTMLElement, ratio: number, range: [number, number], peak: number): void {
    const places = this.places(frame.clientWidth, frame.clientHeight);
    const look = (this.look ??= lookOf(frame));
    if (this.raster?.width !== places.width || this.raster.height !== places.height || this.raster.ratio !== ratio) this.raster = new Raster(places.width, places.height, ratio);
    const raster = this.raster;
    raster.clear(look.background);
    const drawn = Math.max(this.held ?? 0, this.limit !== null && this.limit < 2 * this.most ? this.limit : 0);
    const scale = (this.scale = new Scale(this.timeline.resident_bytes, this.most, drawn, places.top, places.area));
    const ticks = scale.ticks();
    for (const { amount } of ticks) raster.rect(LEFT, scale.y(amount), LEFT + places.plot, scale.y(amount), look.line);
    this.amounts(raster, look, places, range, scale);
    const written = this.heap > 0 ? this.addresses(raster, look, places, range) : [];
    context.setTransform(1, 0, 0, 1, 0, 0);
    raster.put(context);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = look.font;
    context.textBaseline = "middle";
    this.words(context, look, places, range, scale, ticks, peak);
    context.textAlign = "left";
    for (const { piece, left, top, bottom } of written) {
      const [name, tile] = [names(this.timeline.pieces)[piece] ?? "", this.bands.tile(this.bands.of[piece]!)];
      // No stripes run through it.
      context.fillStyle = look.color(tile === TILES ? "--other" : `--tile-${tile}`);
      context.fillRect(left + 2, (top + bottom) / 2 - 7, context.measureText(name).width + 6, 14);
      context.fillStyle = look.color("--on-tile");
      context.fillText(name, left + 5, (top + bottom) / 2);
    }
  }

  private amounts(raster: Raster, look: Look, { plot }: Places, [start, end]: [number, number], scale: Scale): void {
    const bar = (left: number, right: number, under: number, alive: number, padding: number, ink: Ink) => {
      const [top, edge] = [scale.y(under + alive), scale.y(under + alive - padding)];
      raster.rect(left, top, right, scale.y(under), ink);
      if (edge - top > 0.5) raster.rect(left, top, right, edge, ink, true);
    };
    let below = 0;
    this.timeline.residents.forEach(({ bytes, padding_bytes }, at) => {
      const ink = look.residents[at % 2]!;
      bar(LEFT, LEFT + plot, below, bytes, padding_bytes, ink);
      below += bytes;
    });
    const columns = Math.max(1, Math.floor(plot));
    const span = end - start;
    const moment = (column: number) => this.axis.moment(start + (column * span) / columns);
    for (let column = 0; column < columns; ) {
      const from = moment(column);
      // Columns of the same moment are one rectangle.
      let until = column + 1;
      while (until < columns && moment(until) === from) until++;
      let under = this.timeline.resident_bytes;
      const [left, right] = [LEFT + (column * plot) / columns, LEFT + (until * plot) / columns];
      const most = this.profile.fullest(from, Math.max(from + 1, until < columns ? moment(until) : from + 1));
      this.profile.bands(most, (band, alive, padding) => {
        const ink = look.tiles[this.bands.tile(band)]!;
        bar(left, right, under, alive, padding, ink);
        under += alive;
      });
      // The line without padding.
      const data = scale.y(this.profile.data[most]!);
      if (scale.y(this.profile.total[most]!) < data - 2) raster.rect(left, data - 0.5, right, data + 0.5, look.ink);
      column = until;
    }
    this.bounds(raster, look, [start, end], plot, scale.y(0));
    if (scale.cut > 0) raster.rect(LEFT - 4, scale.y(scale.cut) + 2, LEFT + plot + 4, scale.y(scale.cut) + 5, look.background);
  }

  /// Where time is drawn, stripes under what is only bounded.
  private bounds(raster: Raster, look: Look, [start, end]: [number, number], plot: number, bottom: number): void {
    if (this.axis.length === this.profile.moments) return;
    const x = (place: number) => LEFT + Math.min(Math.max((place - start) / (end - start), 0), 1) * plot;
    for (const moment of this.timeline.bound_moments) {
      const [left, right] = [x(this.axis.at(moment)), x(this.axis.at(moment + 1))];
      if (right > left) raster.rect(left, bottom + 1, right, bottom + 6, look.free, true);
    }
  }

  /// Draws what lies where; of those whose name fits, where that is.
  private addresses(raster: Raster, look: Look, places: Places, range: [number, number]): { piece: number; left: number; top: number; bottom: number }[] {
    const { heapTop, heapHeight, plot } = places;
    const { piece, first, end, from, to, padding, tile } = this.blocks;
    const written = [];
    raster.rect(LEFT, heapTop, LEFT + plot, heapTop + heapHeight, look.free);
    const [start, until] = range;
    const [wide, tall] = [plot / (until - start), heapHeight / this.heap];
    // Where a block narrower than a pixel was drawn: of others there nothing more would be seen.
    const columns = Math.ceil(plot) + 1;
    const taken = new Uint8Array(columns * Math.ceil(heapHeight + 1));
    for (let k = 0; k < piece.length; k++) {
      if (end[k]! <= start || first[k]! >= until) continue;
      const left = LEFT + (Math.max(first[k]!, start) - start) * wide;
      const right = LEFT + (Math.min(end[k]!, until) - start) * wide;
      // Addresses rise, as amounts do.
      const top = heapTop + heapHeight - to[k]! * tall;
      const bottom = heapTop + heapHeight - from[k]! * tall;
      if (right - left < 1) {
        const pixel = Math.floor(top - heapTop) * columns + Math.floor(left - LEFT);
        if (taken[pixel]) continue;
        taken[pixel] = 1;
      }
      const ink = look.tiles[tile[k]!]!;
      // An edge of the background parts neighbours of one colour.
      const edge = right - left > 3 && bottom - top > 3 ? 1 : 0;
      if (edge) raster.rect(left, top, right, bottom, look.background);
      raster.rect(left, top + edge, right - edge, bottom, ink);
      const padded = padding[k]! * tall;
      if (padded > 1 && right - left > 2) raster.rect(left, top + edge, right - edge, top + edge + padded, ink, true);
      if (bottom - top > 13 && right - left > 30 && right - left > 7 * (names(this.timeline.pieces)[piece[k]!] ?? "").length + 10) written.push({ piece: piece[k]!, left, top, bottom });
    }
    return written;
  }

  private words(context: CanvasRenderingContext2D, look: Look, places: Places, range: [number, number], scale: Scale, ticks: { amount: number; label: string }[], peak: number): void {
    const { plot, top, area, heapTop, heapHeight } = places;
    const place = (at: number) => LEFT + ((at - range[0]) / (range[1] - range[0])) * plot;
    const x = (moment: number) => place(this.axis.at(moment));
    const write = (text: string, at: number, y: number, align: CanvasTextAlign, name: string) => {
      context.textAlign = align;
      context.fillStyle = look.color(name);
      context.fillText(text, at, y);
    };
    for (const { amount, label } of ticks) write(label, LEFT - 6, scale.y(amount), "right", "--muted");
    let below = 0;
    this.timeline.residents.forEach(({ name, bytes: amount }, at) => {
      const [upper, lower] = [scale.y(below + amount), scale.y(below)];
      if (lower - upper > 12) {
        const words = `${name} ${bytes(amount)}`;
        // No stripes run through it.
        context.fillStyle = look.color(at % 2 ? "--resident-2" : "--resident");
        context.fillRect(LEFT + 3, (upper + lower) / 2 - 6, context.measureText(words).width + 6, 13);
        write(words, LEFT + 6, (upper + lower) / 2 + 1, "left", "--text");
      }
      below += amount;
    });
    for (const { name, first, last } of this.timeline.passes) {
      const [from, to] = [Math.max(x(first), LEFT), Math.min(x(last + 1), LEFT + plot)];
      if (to <= from) continue;
      context.fillStyle = look.color("--muted");
      context.fillRect(from, 10, 1, 8);
      context.fillRect(from, 14, to - from, 1);
      context.fillRect(to - 1, 10, 1, 8);
      if (to - from > 7 * name.length) {
        const half = context.measureText(name).width / 2 + 5;
        context.fillStyle = look.color("--background");
        context.fillRect((from + to) / 2 - half, 6, 2 * half, 16);
        write(name, (from + to) / 2, 14, "center", "--muted");
      }
    }
    const level = (amount: number | null, words: string, side: CanvasTextAlign, name: string) => {
      if (amount === null || !scale.has(amount) || amount <= this.timeline.resident_bytes) return;
      context.fillStyle = look.color(name);
      context.fillRect(LEFT, scale.y(amount), plot, 1.5);
      // Where there is little room, the peak's label is beside what is above the line.
      const [label, y] = [`${words} ${bytes(amount)}`, scale.y(amount) + (plot < NARROW ? 9 : -8)];
      const width = context.measureText(label).width + 6;
      // Bars are hidden behind it.
      context.fillStyle = look.color("--background");
      context.fillRect(side === "left" ? LEFT + 1 : LEFT + plot - 1 - width, y - 7, width, 13);
      write(label, side === "left" ? LEFT + 4 : LEFT + plot - 4, y, side, name);
    };
    const isLate = this.axis.at(peak) > (range[0] + range[1]) / 2;
    level(this.limit, "limit", isLate ? "left" : "right", "--accent");
    if (this.held !== null && this.held > this.most * 1.01) level(this.held, "in all", isLate ? "left" : "right", "--muted");
    const at = (x(peak) + x(peak + 1)) / 2;
    if (at >= LEFT && at <= LEFT + plot) {
      context.fillStyle = look.color("--accent");
      context.fillRect(at - 0.75, top - 6, 1.5, 6 + scale.y(this.most) - top);
      const label = `peak ${bytes(this.most)} in use, step ${grouped(peak + 1)}`;
      const width = context.measureText(label).width;
      // Beside its moment, on the side that has room, or else from the left edge on.
      if (at + 5 + width <= LEFT + plot) write(label, at + 5, top - 6, "left", "--accent");
      else write(label, Math.max(at - 5, width), top - 6, "right", "--accent");
    }
    const under = top + area + 14;
    for (const { at, label } of this.axis.ticks(range, Math.max(plot / 140, 2))) {
      const [middle, half] = [place(at), context.measureText(label).width / 2];
      context.fillStyle = look.color("--line");
      context.fillRect(middle, top + area, 1, 5);
      if (middle - half > LEFT && middle + half < LEFT + plot) write(label, middle, under, "center", "--muted");
    }
    write(this.axis.length === this.profile.moments ? "step" : "time, estimated", LEFT + plot, under + 13, "right", "--muted");
    write("in use", LEFT - 6, 14, "right", "--muted");
    if (this.heap <= 0) return;
    write("by address", LEFT - 6, heapTop - 10, "right", "--muted");
    for (const amount of round(this.heap, 2)) write(rounded(amount), LEFT - 6, heapTop + heapHeight * (1 - amount / this.heap), "right", "--muted");
    write("address 0", LEFT - 6, heapTop + heapHeight - 2, "right", "--muted");
  }
}

/// The allocations by address, in columns, the largest first.
interface Blocks {
  piece: Uint32Array;
  /// Where they begin and end on the axis.
  first: Float64Array;
  end: Float64Array;
  from: Float64Array;
  to: Float64Array;
  padding: Float64Array;
  tile: Uint8Array;
  /// The end of the last.
  heap: number;
}

function blocksOf({ pieces: { first, last, offset, bytes, padding } }: Timeline, bands: Bands, axis: Axis): Blocks {
  const known = Uint32Array.from(offset.keys()).filter((piece) => !Number.isNaN(offset[piece]!));
  const piece = known.sort((a, b) => bytes[b]! - bytes[a]!);
  const column = () => new Float64Array(piece.length);
  const blocks: Blocks = { piece, first: column(), end: column(), from: column(), to: column(), padding: column(), tile: new Uint8Array(piece.length), heap: 0 };
  for (let k = 0; k < piece.length; k++) {
    const at = piece[k]!;
    blocks.first[k] = axis.at(first[at]!);
    blocks.end[k] = axis.at(last[at]! + 1);
    blocks.from[k] = offset[at]!;
    blocks.to[k] = offset[at]! + bytes[at]!;
    blocks.padding[k] = padding[at]!;
    blocks.tile[k] = bands.tile(bands.of[at]!);
    blocks.heap = Math.max(blocks.heap, blocks.to[k]!);
  }
  return blocks;
}

function lookOf(frame: HTMLElement): Look {
  const style = getComputedStyle(frame);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const tiles = [...Array.from({ length: TILES }, (_, k) => `--tile-${k}`), "--other"];
  const of = (names: string[]) => inks(names.map(color), color("--hatching"));
  const [background, free, line, ink] = of(["--background", "--raised", "--line", "--text"]) as [Ink, Ink, Ink, Ink];
  return { ink, tiles: of(tiles), residents: of(["--resident", "--resident-2"]), background, free, line, color, font: `11px ${style.fontFamily}` };
}
