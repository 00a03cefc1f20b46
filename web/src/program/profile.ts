// How much is alive at every moment, in bands, and where amounts are in a plot of it.

import { bytes } from "../dom";
import type { Timeline } from "./data";

/// Bytes alive at every moment, by band, and how many of them are padding. What stands isn't among them.
export class Profile {
  readonly moments: number;
  private readonly alive: Float64Array[];
  private readonly padding: Float64Array[];
  readonly total: Float64Array;
  /// `total` without padding.
  readonly data: Float64Array;

  /// `band` has the band of each piece.
  constructor(timeline: Timeline, band: Uint16Array, bands: number) {
    this.moments = Math.max(timeline.moments, 1);
    const zeros = () => Array.from({ length: bands }, () => new Float64Array(this.moments + 1));
    [this.alive, this.padding] = [zeros(), zeros()];
    const { bytes, padding, first, last } = timeline.pieces;
    const used = new Set<number>();
    for (let piece = 0; piece < first.length; piece++) {
      const from = Math.min(first[piece]!, this.moments - 1);
      const to = Math.min(last[piece]! + 1, this.moments);
      used.add(band[piece]!);
      step(this.alive[band[piece]!]!, from, to, bytes[piece]!);
      if (padding[piece]! > 0) step(this.padding[band[piece]!]!, from, to, padding[piece]!);
    }
    this.total = new Float64Array(this.moments + 1).fill(timeline.resident_bytes);
    const padded = timeline.residents.reduce((sum, { padding_bytes }) => sum + padding_bytes, 0);
    this.data = new Float64Array(this.moments + 1).fill(timeline.resident_bytes - padded);
    for (const number of used) {
      for (const steps of [this.alive[number]!, this.padding[number]!]) accumulate(steps);
      add(this.total, this.alive[number]!, 1);
      add(this.data, this.alive[number]!, 1);
      add(this.data, this.padding[number]!, -1);
    }
  }

  /// The fullest moment of a range, its end exclusive: a column of pixels never misses the peak.
  fullest(from: number, to: number): number {
    let best = from;
    for (let moment = from + 1; moment < to; moment++) if (this.total[moment]! > this.total[best]!) best = moment;
    return best;
  }

  /// Of each band with something in it, from the lowest: its number, what it holds, and how much of that is padding.
  bands(moment: number, each: (band: number, alive: number, padding: number) => void): void {
    for (let band = 0; band < this.alive.length; band++) {
      const alive = this.alive[band]![moment]!;
      if (alive > 0) each(band, alive, this.padding[band]![moment]!);
    }
  }
}

function step(steps: Float64Array, from: number, to: number, amount: number): void {
  steps[from]! += amount;
  steps[to]! -= amount;
}

function accumulate(steps: Float64Array): void {
  for (let moment = 1, sum = steps[0]!; moment < steps.length; moment++) steps[moment] = sum += steps[moment]!;
}

function add(to: Float64Array, steps: Float64Array, sign: 1 | -1): void {
  for (let moment = 0; moment < to.length; moment++) to[moment]! += sign * steps[moment]!;
}

/// Above this ratio to the bytes on top, standing bytes are drawn smaller: else the top could hardly be seen.
const CUT_FROM = 4;

/// The share of a plot that is left to it then.
const FLOOR = 0.28;

/// The height of the plot over that of the drawing.
const ROOM = 1.03;

/// The bytes from the bottom of a plot to its top.
export class Scale {
  /// Where the axis is broken: up to there, amounts have a scale of their own.
  readonly cut: number;

  private readonly most: number;

  /// `alive` is the most that ever is, `drawn` what else has a line, such as a limit.
  constructor(
    private readonly resident: number,
    alive: number,
    drawn: number,
    private readonly top: number,
    private readonly height: number,
  ) {
    const above = Math.max(alive, drawn) - resident;
    this.cut = alive > resident && above * CUT_FROM < resident ? resident : 0;
    this.most = this.cut + (Math.max(alive, drawn) - this.cut) * ROOM || 1;
  }

  /// Whether an amount is in the plot.
  has(amount: number): boolean {
    return amount <= this.most;
  }

  /// How far down an amount is.
  y(amount: number): number {
    const floor = this.cut > 0 ? FLOOR : 0;
    const share = amount < this.cut ? (amount / this.cut) * floor : floor + ((amount - this.cut) / (this.most - this.cut || 1)) * (1 - floor);
    return this.top + this.height * (1 - share);
  }

  /// The amount that is so far down; nothing outside of the plot.
  amount(y: number): number | null {
    const share = 1 - (y - this.top) / this.height;
    if (share < 0 || share > 1) return null;
    const floor = this.cut > 0 ? FLOOR : 0;
    return share < floor ? (share / floor) * this.cut : this.cut + ((share - floor) / (1 - floor)) * (this.most - this.cut);
  }

  /// Round amounts and their labels, at least 20 pixels from each other; those above a break say how much more than it they are.
  ticks(): { amount: number; label: string }[] {
    const height = this.height * (this.cut > 0 ? 1 - FLOOR : 1);
    const ticks = round(this.most - this.cut, Math.min(Math.max(height / 40, 1), 4)).map((amount) => ({ amount: this.cut + amount, label: `${this.cut > 0 ? "+" : ""}${rounded(amount)}` }));
    return this.cut > 0 ? [{ amount: this.resident, label: bytes(this.resident) }, ...ticks] : ticks;
  }
}

/// About `about` round amounts up to a largest.
export function round(largest: number, about: number): number[] {
  let step = 1;
  while (largest / step > about * 2) step *= 2;
  while (step > 1 && largest / step < about) step /= 2;
  return Array.from({ length: Math.floor(largest / step) }, (_, k) => (k + 1) * step);
}

/// A round amount without its zeros.
export function rounded(amount: number): string {
  return bytes(amount).replace(/\.00 /, " ").replace(/(\.\d)0 /, "$1 ");
}
