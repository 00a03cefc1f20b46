// The audit's JSON, what lies in memory over time, and what is alive at a moment.

import { sourceLabel, type Source } from "../dom";

export interface PeakRow {
  instruction: string;
  opcode: string;
  shape: string;
  role: "argument" | "output" | "constant" | "table" | "temporary";
  count: number;
  bytes: number;
  padding_bytes: number;
  op_name: string | null;
  source: Source | null;
}

export interface Advice {
  kind: string;
  target: string;
  instruction: string;
  shape: string;
  peak_bytes_saved: number | null;
  is_bound: boolean;
  sentence: string;
  code: string | null;
  imports: string[] | string | null;
  source: Source | null;
}

export interface Space {
  memory_space: number;
  memory_space_name: string;
  physical_bytes: number;
  padding_bytes: number;
  buffers: number;
  peak_live_bytes: number | null;
  peak_temporary_bytes: number | null;
  peak_padding_bytes: number | null;
  peak_fragmentation_bytes: number | null;
  peak_instruction: string | null;
  peak_source: Source | null;
  peak_buffers: PeakRow[] | null;
}

export interface Buffer {
  instruction: string;
  opcode: string;
  shape: string;
  memory_space: number;
  physical_bytes: number;
  padding_bytes: number;
  cause: string | null;
  fix: string | null;
  op_name: string | null;
  source: Source | null;
}

export interface CopyRow {
  instruction: string;
  from: string;
  to: string;
  class: string;
  trips: number | null;
  moved_bytes: number;
  op_name: string | null;
  source: Source | null;
}

/// What `tilewise audit --format json` prints.
export interface Report {
  input: string;
  module: string;
  entry: string | null;
  is_scheduled: boolean;
  partitions: number;
  argument_bytes: number;
  output_bytes: number;
  alias_bytes: number;
  temporary_bytes: number | null;
  memory_spaces: Space[];
  advice: Advice[];
  buffers: Buffer[];
  copies: CopyRow[];
  at_least_bytes: number;
  at_most_bytes: number;
  no_plan: string | null;
  compiler_plan: { values: number; differences: string[] } | null;
  hbm_limit_bytes: number | null;
  fits: boolean | null;
  warnings: { kind: string; message: string }[];
}

type Piece = [
  owner: number,
  shape: number | null,
  instruction: string,
  offset: number | null,
  bytes: number,
  padding: number,
  first: number,
  last: number,
];

/// What lies in one memory space over the program's order.
export interface Timeline {
  memory_space: number;
  standing_bytes: number;
  peak_moment: number | null;
  order: string[];
  order_owners: number[];
  owners: string[];
  shapes: string[];
  pieces: Piece[];
}

/// What a view of a program is made of.
export interface Audit {
  report: Report;
  timeline: Timeline | null;
  facts: { generation: string; hbm_bytes: number } | null;
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

function standing(report: Report): Row[] {
  const rows = (hbm(report)?.peak_buffers ?? []).filter((row) => row.role !== "temporary" && row.role !== "table");
  return rows.map((row) => ({
    owner: sourceLabel(row.source) ?? row.op_name ?? row.role,
    instruction: row.instruction,
    shape: row.shape,
    role: row.role,
    count: row.count,
    bytes: row.bytes,
    padding: row.padding_bytes,
  }));
}

/// What is alive at a moment, the largest first. Without a timeline, what is alive at the peak.
export function aliveAt({ report, timeline }: Audit, moment: number): Row[] {
  const rows = standing(report);
  if (!timeline) {
    const others = (hbm(report)?.peak_buffers ?? []).filter((row) => row.role === "temporary" || row.role === "table");
    for (const row of others) {
      const owner = sourceLabel(row.source) ?? row.op_name ?? "no line";
      rows.push({ ...row, owner, padding: row.padding_bytes });
    }
  } else {
    const known = new Map<string, Row>();
    for (const [owner, shape, instruction, , bytes, padding, first, last] of timeline.pieces) {
      if (moment < first || moment > last) continue;
      const key = `${owner} ${shape}`;
      const row = known.get(key);
      if (row) {
        row.count += 1;
        row.bytes += bytes;
        row.padding += padding;
      } else {
        const text = shape === null ? "" : (timeline.shapes[shape] ?? "");
        const label = timeline.owners[owner] ?? "";
        known.set(key, { owner: label, instruction, shape: text, role: "temporary", count: 1, bytes, padding });
      }
    }
    rows.push(...known.values());
  }
  return rows.sort((a, b) => b.bytes - a.bytes);
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
  const held = byOwner(alive.filter((row) => row.role === "temporary" || row.role === "table"));
  return new Map(held.filter((row) => row.bytes * 200 >= total).slice(0, COLORED).map((row, color) => [row.owner, color]));
}

/// The colour of a row, as a CSS variable's name.
export function colorOf(row: Row, colors: Map<string, number>): string {
  if (row.role !== "temporary" && row.role !== "table") return "--standing";
  const color = colors.get(row.owner);
  return color === undefined ? "--other" : `--tile-${color}`;
}
