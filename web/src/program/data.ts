// The audit's JSON, what lies in memory over time, and what is alive at a moment.

import { sourceLabel, type Source } from "../dom";

export interface PeakRow {
  instruction: string;
  shape: string;
  role: "argument" | "output" | "constant" | "table" | "temporary";
  count: number;
  bytes: number;
  padding_bytes: number;
  op_name: string | null;
  source: Source | null;
}

export interface Advice {
  target: string;
  instruction: string | null;
  shape: string | null;
  sentence: string;
  code: string | null;
  imports: string | null;
  source: Source | null;
}

export interface Space {
  memory_space: number;
  peak_buffers: PeakRow[] | null;
}

export interface Buffer {
  instruction: string;
  opcode: string;
  shape: string;
  physical_bytes: number;
  padding_bytes: number;
  cause: string | null;
  op_name: string | null;
  source: Source | null;
}

/// What `tilewise audit --format json` prints, as far as it is drawn.
export interface Report {
  input: string;
  module: string;
  memory_spaces: Space[];
  advice: Advice[];
  buffers: Buffer[];
  at_most_bytes: number;
  hbm_limit_bytes: number | null;
  warnings: { message: string }[];
}

/// What lies in one memory space over the program's order, as `tilewise_audit::Timeline` is printed.
export interface TimelineJson {
  resident_bytes: number;
  peak_moment: number | null;
  order: string[];
  order_owners: number[];
  owners: string[];
  shapes: string[];
  pieces: {
    owner: number[];
    shape: (number | null)[];
    instruction: string[];
    offset: (number | null)[];
    bytes: number[];
    padding_bytes: number[];
    first: number[];
    last: number[];
  };
}

/// The same in columns of numbers, which go from the worker to the page without a copy; names are joined by line ends.
export interface Timeline {
  resident_bytes: number;
  peak_moment: number | null;
  moments: number;
  order: string;
  order_owners: Uint32Array<ArrayBuffer>;
  owners: string[];
  shapes: string[];
  pieces: Pieces;
}

/// Memory in use for a part of a run.
export interface Pieces {
  owner: Uint32Array<ArrayBuffer>;
  /// Of the timeline's shapes; past their end where there is none.
  shape: Uint32Array<ArrayBuffer>;
  instruction: string;
  /// Not a number where it isn't known.
  offset: Float64Array<ArrayBuffer>;
  bytes: Float64Array<ArrayBuffer>;
  padding: Float64Array<ArrayBuffer>;
  first: Uint32Array<ArrayBuffer>;
  last: Uint32Array<ArrayBuffer>;
}

/// What is said of a program first, as `tilewise_report::Summary` is printed.
export interface Summary {
  title: string;
  origin: string;
  headline: string;
  parts: { kind: "arguments" | "results" | "constants" | "temporaries"; bytes: number; words: string }[];
  machine: string;
  verdict: Remark | null;
  peak: Remark[];
  notes: Remark[];
  recommendations: Recommended[];
  remedy: Remark | null;
  contents: Remark[];
  copies: Copies | null;
}

export interface Remark {
  words: string;
  tone: "faint" | "plain" | "strong" | "warning" | "bad";
}

export interface Recommended extends Advice {
  lead: string;
}

/// Copies, and the lines of the user's program that move the most by them.
export interface Copies {
  moved_bytes: number;
  copies: number;
  lines: CopyLine[];
  needless: string[];
}

export interface CopyLine {
  source: Source | null;
  instruction: string;
  copies: number;
  moved_bytes: number;
  is_lower_bound: boolean;
  share: number;
  purpose: string;
  why: string | null;
}

/// What a view of a program is made of.
export interface Audit {
  /// Of what is alive at the peak it has what stands, the timeline the rest.
  report: Report;
  /// Null where the program isn't there.
  summary: Summary | null;
  timeline: Timeline | null;
}

/// An audit as it was printed, made ready to be shown: what a view doesn't use stays behind. Where programs are large
/// this is done off the page's thread.
export function audit(report: Report, summary: Summary | null, timeline: TimelineJson | null): Audit {
  const memory_spaces = report.memory_spaces.map((space) => {
    // The timeline has what is temporary.
    const shown = space.memory_space === 0 && space.peak_buffers?.filter((row) => !timeline || stands(row));
    return { ...space, peak_buffers: shown || null };
  });
  return { report: { ...report, memory_spaces }, summary, timeline: timeline && columns(timeline) };
}

/// Whether it is there for the whole run.
function stands({ role }: { role: string }): boolean {
  return role !== "temporary" && role !== "table";
}

/// What of an audit is handed over, not copied.
export function buffers({ timeline }: Audit): ArrayBuffer[] {
  if (!timeline) return [];
  const { owner, shape, offset, bytes, padding, first, last } = timeline.pieces;
  return [timeline.order_owners, owner, shape, offset, bytes, padding, first, last].map((column) => column.buffer);
}

function columns({ order, order_owners, pieces, ...others }: TimelineJson): Timeline {
  return {
    ...others,
    moments: order.length,
    order: order.join("\n"),
    order_owners: Uint32Array.from(order_owners),
    pieces: {
      owner: Uint32Array.from(pieces.owner),
      shape: Uint32Array.from(pieces.shape, (shape) => shape ?? others.shapes.length),
      instruction: pieces.instruction.join("\n"),
      offset: Float64Array.from(pieces.offset, (offset) => offset ?? NaN),
      bytes: Float64Array.from(pieces.bytes),
      padding: Float64Array.from(pieces.padding_bytes),
      first: Uint32Array.from(pieces.first),
      last: Uint32Array.from(pieces.last),
    },
  };
}

const split = new WeakMap<object, string[]>();

/// The names that a column's or a timeline's text joins.
export function names(of: { order: string } | { instruction: string }): string[] {
  const known = split.get(of) ?? ("order" in of ? of.order : of.instruction).split("\n");
  split.set(of, known);
  return known;
}

/// Equal arrays of one line that are alive at one moment.
export interface Row {
  owner: string;
  instruction: string;
  shape: string;
  role: string;
  count: number;
  bytes: number;
  padding: number;
}

export function hbm(report: Report): Space | undefined {
  return report.memory_spaces.find((space) => space.memory_space === 0);
}

/// What is alive at a moment, the largest first. Without a timeline, what is alive at the peak.
export function aliveAt({ report, timeline }: Audit, moment: number): Row[] {
  const rows = (hbm(report)?.peak_buffers ?? []).map((row) => ({
    owner: sourceLabel(row.source) ?? row.op_name ?? (stands(row) ? row.role : "no line"),
    instruction: row.instruction,
    shape: row.shape,
    role: row.role as string,
    count: row.count,
    bytes: row.bytes,
    padding: row.padding_bytes,
  }));
  if (timeline) rows.push(...temporariesAt(timeline, moment));
  return rows.sort((a, b) => b.bytes - a.bytes);
}

/// Equal temporaries of one line are one row.
function temporariesAt(timeline: Timeline, moment: number): Row[] {
  const known = new Map<number, Row>();
  const { owner, shape, bytes, padding, first, last } = timeline.pieces;
  for (let piece = 0; piece < first.length; piece++) {
    if (moment < first[piece]! || moment > last[piece]!) continue;
    const key = owner[piece]! * (timeline.shapes.length + 1) + shape[piece]!;
    const row = known.get(key);
    if (row) {
      row.count += 1;
      row.bytes += bytes[piece]!;
      row.padding += padding[piece]!;
    } else {
      const [label, text] = [timeline.owners[owner[piece]!] ?? "", timeline.shapes[shape[piece]!] ?? ""];
      const instruction = names(timeline.pieces)[piece] ?? "";
      known.set(key, { owner: label, instruction, shape: text, role: "temporary", count: 1, bytes: bytes[piece]!, padding: padding[piece]! });
    }
  }
  return [...known.values()];
}

/// Rows by the line that owns them, the largest first.
export function byOwner(rows: Row[]): Row[] {
  const owners = new Map<string, Row>();
  for (const row of rows) {
    const known = owners.get(row.owner);
    if (!known) owners.set(row.owner, { ...row });
    else {
      known.count += row.count;
      known.bytes += row.bytes;
      known.padding += row.padding;
      if (known.shape !== row.shape) known.shape = "";
    }
  }
  return [...owners.values()].sort((a, b) => b.bytes - a.bytes);
}

/// Lines that have a colour of their own.
export const COLORED = 8;

/// The colour of each owner that holds enough at the peak to be seen; what stands has none, the rest share one.
export function colors(audit: Audit): Map<string, number> {
  const peak = audit.timeline?.peak_moment ?? 0;
  const alive = aliveAt(audit, peak);
  const total = alive.reduce((sum, row) => sum + row.bytes, 0);
  const held = byOwner(alive.filter((row) => !stands(row)));
  return new Map(held.filter((row) => row.bytes * 200 >= total).slice(0, COLORED).map((row, color) => [row.owner, color]));
}

/// The colour of a row, as a CSS variable's name.
export function colorOf(row: Row, colors: Map<string, number>): string {
  if (stands(row)) return "--resident";
  const color = colors.get(row.owner);
  return color === undefined ? "--other" : `--tile-${color}`;
}
