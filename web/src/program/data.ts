// The audit's JSON, what lies in memory over time, and what is alive at a moment.

import type { Source } from "../dom";

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
  memory_space_name: string;
  peak_fragmentation_bytes: number | null;
  peak_instruction: string | null;
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

/// An audit, as `tilewise audit --format json` prints it, as far as it is drawn.
export interface Report {
  input: string;
  module: string;
  machine: string;
  memory_spaces: Space[];
  advice: Advice[];
  buffers: Buffer[];
  at_most_bytes: number;
  hbm_limit_bytes: number | null;
  warnings: { kind: string; message: string }[];
  /// Of the page they come with the whole summary.
  kernels: Kernel[];
}

/// A Pallas kernel: what it takes of VMEM, and what lies between it and those that make or read its arrays.
export interface Kernel {
  instruction: string;
  used_bytes: number | null;
  limit_bytes: number | null;
  cap_bytes: number | null;
  operands: KernelOperand[];
  results: KernelResult[];
  copied_bytes: number;
  body_moves: string[] | null;
  op_name: string | null;
  source: Source | null;
}

/// XLA's change of an array between a kernel and its neighbour.
export interface BoundaryChange {
  opcode: string;
  from: string;
  to: string;
  bytes: number;
}

/// An operand or a result of a kernel.
export interface KernelArray {
  index: number;
  shape: string;
  between: BoundaryChange[];
  copied_bytes: number;
  forced_by: string | null;
  remedy: { sentence: string; code: string | null } | null;
}

export interface KernelOperand extends KernelArray {
  producer: string;
}

export interface KernelResult extends KernelArray {
  user: string;
}

/// The arrays in one memory space over the program's order, as `tilewise_audit::Timeline` is printed.
export interface TimelineJson extends Standing {
  order: string[];
  order_owners: number[];
  owners: string[];
  owner_names: string[];
  paths: string[];
  modules: string[];
  order_paths: (number | null)[];
  shapes: string[];
  standing: StandingRow[];
  families: string[];
  /// How long each moment takes, and which of them are only bounded; empty where that isn't known.
  seconds: number[];
  bound_moments: number[];
  pieces: {
    owner: number[];
    path: (number | null)[];
    layer: (number | null)[];
    shape: (number | null)[];
    instruction: string[];
    offset: (number | null)[];
    bytes: number[];
    padding_bytes: number[];
    first: number[];
    last: number[];
  };
}

/// Equal arrays that are there for the whole run; numbers are those of the timeline's lists.
export interface StandingRow {
  owner: number;
  path: number | null;
  shape: number;
  family: number | null;
  role: "argument" | "output" | "constant";
  instruction: string;
  count: number;
  bytes: number;
  padding_bytes: number;
}

/// Fields that both forms of a timeline share.
interface Standing {
  memory_space: number;
  memory_space_name: string;
  resident_bytes: number;
  /// These bytes by the trees of arguments.
  residents: { name: string; count: number; bytes: number; padding_bytes: number }[];
  peak_moment: number | null;
  /// Layers of a network, and the passes of a training step; none of other programs.
  layers: string[];
  passes: { name: string; first: number; last: number }[];
}

/// A timeline in columns of numbers, which the worker hands over without a copy; names are joined by line ends.
export interface Timeline extends Standing {
  moments: number;
  order: string;
  order_owners: Uint32Array<ArrayBuffer>;
  /// Lines of the user's program, and of a library that they lead to, in full; and their short names.
  owners: string[];
  owner_names: string[];
  paths: string[];
  /// Of each path, the module that it is of.
  modules: string[];
  shapes: string[];
  pieces: Pieces;
  standing: StandingRow[];
  families: string[];
  seconds: Float64Array<ArrayBuffer>;
  bound_moments: Uint32Array<ArrayBuffer>;
}

/// Memory in use for a part of a run.
export interface Pieces {
  owner: Uint32Array<ArrayBuffer>;
  /// Of the timeline's paths and layers; past their end if unknown.
  path: Uint32Array<ArrayBuffer>;
  layer: Uint32Array<ArrayBuffer>;
  /// Of the timeline's shapes; past their end if unknown.
  shape: Uint32Array<ArrayBuffer>;
  instruction: string;
  /// Not a number where it isn't known.
  offset: Float64Array<ArrayBuffer>;
  bytes: Float64Array<ArrayBuffer>;
  padding: Float64Array<ArrayBuffer>;
  first: Uint32Array<ArrayBuffer>;
  last: Uint32Array<ArrayBuffer>;
}

/// The summary of a program, as `tilewise_report::Summary` is printed.
export interface Summary {
  title: string;
  origin: string;
  headline: Headline;
  causes: Cause[];
  changes: PlannedChange[];
  held: string;
  parts: { kind: "arguments" | "results" | "constants" | "temporaries"; bytes: number; words: string }[];
  machine: string;
  time: Remark[];
  peak: Remark[];
  notes: Remark[];
  /// Changes without a price.
  remedies: string[];
  copies: Copies | null;
}

export interface Remark {
  words: string;
  tone: "faint" | "plain" | "strong" | "warning" | "bad";
}

/// Whether a program fits, and by how much.
export interface Headline {
  verdict: "fits" | "does_not_fit" | "may_not_fit" | "unknown";
  needed_bytes: number | null;
  limit_bytes: number | null;
  is_comfortable: boolean;
  comfort: string | null;
  sentence: string;
  tone: Remark["tone"];
}

/// A part of what a program holds at its peak, and what that is.
export interface Cause {
  kind: string;
  bytes: number;
  /// Nothing where the whole isn't known.
  share: number | null;
  arrays: number;
  axes: { name: string | null; size: number }[];
  sentence: string;
  /// The places of a row that hold data, and all that it takes.
  filled: [number, number] | null;
  source: Source | null;
}

/// A change, and what the program needs once it and those before it are made.
export interface PlannedChange extends Advice {
  do: string;
  lead: string;
  bytes_after: number | null;
  fits: boolean | null;
  seconds_after: number | null;
  effect: string;
  plain_code: string | null;
  /// Where to make it; empty where nothing tells.
  place: string;
  /// The line of source that makes it.
  edit: { file: string; line: number; before: string; after: string } | null;
  caveat: string | null;
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

/// The data of a program's view.
export interface Audit {
  report: Report;
  /// Null where the program isn't there.
  summary: Summary | null;
  timeline: Timeline | null;
}

/// An audit as it was printed, made ready to be shown: what a view doesn't use stays behind. Where programs are large
/// this is done off the page's thread.
export function audit(report: Report, summary: Summary | null, timeline: TimelineJson | null): Audit {
  // The timeline has what is alive at any moment.
  const memory_spaces = report.memory_spaces.map((space) => {
    return { ...space, peak_buffers: timeline && space.peak_buffers ? [] : space.peak_buffers };
  });
  return { report: { ...report, kernels: report.kernels ?? [], memory_spaces }, summary, timeline: timeline && columns(timeline) };
}

/// Whether it is there for the whole run.
export function stands({ role }: { role: string }): boolean {
  return role !== "temporary" && role !== "table";
}

/// The buffers of a timeline that are transferred, not copied.
export function buffers(timeline: Timeline | null): ArrayBuffer[] {
  if (!timeline) return [];
  const { owner, path, layer, shape, offset, bytes, padding, first, last } = timeline.pieces;
  return [timeline.order_owners, timeline.seconds, timeline.bound_moments, owner, path, layer, shape, offset, bytes, padding, first, last].map((column) => column.buffer);
}

export function columns({ order, order_owners, order_paths: _, seconds, bound_moments, pieces, ...others }: TimelineJson): Timeline {
  return {
    ...others,
    moments: order.length,
    order: order.join("\n"),
    order_owners: Uint32Array.from(order_owners),
    seconds: Float64Array.from(seconds),
    bound_moments: Uint32Array.from(bound_moments),
    pieces: {
      owner: Uint32Array.from(pieces.owner),
      path: Uint32Array.from(pieces.path, (path) => path ?? others.paths.length),
      layer: Uint32Array.from(pieces.layer, (layer) => layer ?? others.layers.length),
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
