// The rows alive at a moment: arrays, or together by line, by name or by module. Who owns what, and of which module
// it is, the core says; here bytes are only added up.

import { sourceLabel } from "../dom";
import { names, stands, type Audit, type Timeline } from "./data";

/// Equal arrays of one line and module that are alive at one moment, or several such rows together.
export interface Row {
  /// The line that owns it, or an argument's name; in full, and in few letters.
  owner: string;
  name: string;
  /// The framework's name of the operation or argument.
  path: string;
  /// The module of the network, `Model/layer_3`; empty without one.
  module: string;
  /// Equal arguments whose names differ only in numbers, and their common name.
  family?: string | undefined;
  instruction: string;
  /// Empty where the rows that are together have several.
  shape: string;
  role: string;
  count: number;
  bytes: number;
  padding: number;
  /// Its allocations, in the timeline.
  pieces: number[];
  /// The rows that it adds up.
  rows?: Row[];
}

/// The identity of a row in a table, at any moment.
export const key = ({ role, owner, shape }: Row) => `${role}\n${owner}\n${shape}`;

/// The rows alive at a moment in a timeline's memory. Without a timeline, the report's rows of the peak.
export function aliveAt(audit: Audit, timeline: Timeline | null, moment: number): Row[] {
  if (!timeline) return reported(audit);
  const { first, last } = timeline.pieces;
  return [...standing(timeline), ...temporaries(timeline, (piece) => first[piece]! <= moment && moment <= last[piece]!)];
}

/// Every array of a run, whenever it is alive.
export const ever = (timeline: Timeline): Row[] => [...standing(timeline), ...temporaries(timeline, () => true)];

/// Whether a row is among what is alive at a moment.
export function isAliveAt(timeline: Timeline, row: Row, moment: number): boolean {
  const { first, last } = timeline.pieces;
  return stands(row) || row.pieces.some((piece) => first[piece]! <= moment && moment <= last[piece]!);
}

function reported({ report }: Audit): Row[] {
  const space = report.memory_spaces.find(({ memory_space }) => memory_space === 0);
  return (space?.peak_buffers ?? []).map((row) => {
    const owner = sourceLabel(row.source) ?? row.op_name ?? row.role;
    return { owner, name: owner, path: row.op_name ?? "", module: "", instruction: row.instruction, shape: row.shape, role: row.role, count: row.count, bytes: row.bytes, padding: row.padding_bytes, pieces: [] };
  });
}

function standing(timeline: Timeline): Row[] {
  return timeline.standing.map(({ owner, path, shape, family, role, instruction, count, bytes, padding_bytes }) => ({
    ...named(timeline, owner, path ?? timeline.paths.length),
    ...(family !== null && { family: timeline.families[family] }),
    instruction,
    shape: timeline.shapes[shape] ?? "",
    role,
    count,
    bytes,
    padding: padding_bytes,
    pieces: [],
  }));
}

const named = (timeline: Timeline, owner: number, path: number) => ({
  owner: timeline.owners[owner] ?? "",
  name: timeline.owner_names[owner] ?? "",
  path: timeline.paths[path] ?? "",
  module: timeline.modules[path] ?? "",
});

/// A piece by itself, as a row.
export function rowOf(timeline: Timeline, piece: number): Row {
  const { owner, path, shape, bytes, padding } = timeline.pieces;
  return {
    ...named(timeline, owner[piece]!, path[piece]!),
    instruction: names(timeline.pieces)[piece] ?? "",
    shape: timeline.shapes[shape[piece]!] ?? "",
    role: "temporary",
    count: 1,
    bytes: bytes[piece]!,
    padding: padding[piece]!,
    pieces: [piece],
  };
}

/// Equal temporaries of one line and one operation are one row.
function temporaries(timeline: Timeline, isWanted: (piece: number) => boolean): Row[] {
  const known = new Map<number, Row>();
  const { owner, path, shape, first } = timeline.pieces;
  const [shapes, paths] = [timeline.shapes.length + 1, timeline.paths.length + 1];
  for (let piece = 0; piece < first.length; piece++) {
    if (!isWanted(piece)) continue;
    const same = (owner[piece]! * paths + path[piece]!) * shapes + shape[piece]!;
    const [row, next] = [known.get(same), rowOf(timeline, piece)];
    if (row) add(row, next);
    else known.set(same, next);
  }
  return [...known.values()];
}

function add(to: Row, row: Row): void {
  to.count += row.count;
  to.bytes += row.bytes;
  to.padding += row.padding;
  for (const piece of row.pieces) to.pieces.push(piece);
}

export const sum = (rows: Row[], of: (row: Row) => number): number => rows.reduce((sum, row) => sum + of(row), 0);

function grouped(rows: Row[], name: (row: Row) => string): Row[][] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(name(row));
    if (group) group.push(row);
    else groups.set(name(row), [row]);
  }
  return [...groups.values()];
}

/// Rows of one name as one row, the largest first; `inner` keeps what is in it.
function together(rows: Row[], name: (row: Row) => string, called: (row: Row) => Partial<Row>, inner = true): Row[] {
  const all = grouped(rows, name).map((rows) => {
    const [first] = rows as [Row];
    if (rows.length === 1) return first;
    const whole: Row = { ...first, count: 0, bytes: 0, padding: 0, pieces: [], ...(inner && { ...called(first), rows }) };
    for (const row of rows) add(whole, row);
    if (rows.some(({ shape }) => shape !== first.shape)) whole.shape = "";
    if (rows.some(({ role }) => role !== first.role)) whole.role = "";
    return whole;
  });
  return all.sort((a, b) => b.bytes - a.bytes);
}

/// Equal arrays of one line, whatever their module.
export const arrays = (rows: Row[]): Row[] => together(rows, key, () => ({}), false);

/// Rows, with equal arguments whose names differ only in numbers as one: 40 of `ws[i]`.
export const folded = (rows: Row[]): Row[] =>
  together(arrays(rows), (row) => (row.family ? `${row.shape}\n${row.family}` : `\n${key(row)}`), ({ family = "" }) => ({ owner: family, name: family }));

/// Rows by the line that owns them, those of one role.
export const byOwner = (rows: Row[]): Row[] => together(arrays(rows), ({ role, owner }) => `${role}\n${owner}`, () => ({}));

/// The rows below a module: its modules, and the arrays outside all of them.
export function below(rows: Row[], module: string[]): Row[] {
  const before = module.map((name) => `${name}/`).join("");
  const inside = rows.filter((row) => `${row.module}/`.startsWith(before));
  const part = ({ module }: Row) => module.slice(before.length).split("/")[0] ?? "";
  const [modules, own] = [inside.filter((row) => part(row) !== ""), inside.filter((row) => part(row) === "")];
  const groups = grouped(modules, part).map((rows) => {
    const name = part(rows[0]!);
    const whole: Row = { ...rows[0]!, owner: name, name, path: "", instruction: "", shape: "", role: "", family: undefined, count: 0, bytes: 0, padding: 0, pieces: [], rows: arrays(rows) };
    for (const row of rows) add(whole, row);
    return whole;
  });
  return [...groups, ...folded(own)].sort((a, b) => b.bytes - a.bytes);
}
