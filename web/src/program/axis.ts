// Where moments lie along a picture: each as wide as any other, or as long as it takes.

/// The unit of a picture's width.
export type Width = "order" | "time";

export class Axis {
  /// Where each moment begins, and last where all end; nothing where each has a width of 1.
  private readonly starts: Float64Array | null;
  /// The end of the last moment.
  readonly length: number;

  constructor(
    readonly moments: number,
    seconds?: Float64Array,
  ) {
    this.starts = seconds?.length ? new Float64Array(moments + 1) : null;
    for (let moment = 0, sum = 0; this.starts && moment < moments; moment++) this.starts[moment + 1] = sum += seconds![moment] ?? 0;
    this.length = this.starts?.[moments] ?? moments;
  }

  /// Where a moment begins.
  at(moment: number): number {
    return this.starts ? this.starts[Math.min(Math.max(moment, 0), this.moments)]! : moment;
  }

  /// The moment at a place.
  moment(place: number): number {
    if (!this.starts) return Math.min(Math.max(Math.floor(place), 0), this.moments - 1);
    let [low, high] = [0, this.moments - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle]! <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /// The shortest part of it that is looked at.
  get shortest(): number {
    return (this.length * Math.min(NEAREST, this.moments)) / this.moments;
  }

  /// About `about` places of a range with their labels: numbers of steps, or times.
  ticks([from, to]: [number, number], about: number): { at: number; label: string }[] {
    const step = round((to - from) / about, this.starts ? 0 : 1);
    const first = Math.ceil(from / step);
    return Array.from({ length: Math.max(Math.floor(to / step) - first + 1, 0) }, (_, k) => (first + k) * step).map((at) => ({
      at: this.starts ? at : Math.max(at - 0.5, 0),
      label: this.starts ? duration(at, step) : Math.max(at, 1).toLocaleString("en-US"),
    }));
  }
}

/// Moments that are drawn at the least.
const NEAREST = 8;

/// The next of 1, 2, 5, 10, … from an amount on.
function round(amount: number, least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(amount, 1e-12)));
  return Math.max([1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= amount * 0.999) ?? power, least);
}

const UNITS: [string, number][] = [
  ["s", 1],
  ["ms", 1e-3],
  ["µs", 1e-6],
  ["ns", 1e-9],
];

/// A time in the unit in which a step of it has no zeros in front.
export function duration(seconds: number, step = seconds): string {
  const [unit, scale] = UNITS.find(([, scale]) => step >= scale * 0.999) ?? UNITS[3]!;
  return `${Number((seconds / scale).toPrecision(4))} ${unit}`;
}
