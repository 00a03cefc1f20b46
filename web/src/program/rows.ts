// What is alive at a moment, as rows: arrays, or together by line, by name or by module.

import { sourceLabel } from "../dom";
import { names, stands, type Audit, type Timeline } from "./data";

/// Equal arrays of one line that are alive at one moment, or several such rows together.
export interface Row {
  /// The line that owns it, or an argument's name.
  owner: string;
  /// The framework's name of the operation or argument.
  path: string;
  instruction: string;
  /// Empty where the rows that are together have several.
  shape: string;
  role: string;
  count: number;
  bytes: number;
  padding: number;
  /// Its allocations, in the timeline.
  pieces: number[];
  /// What is together in it.
  rows?: Row[];
}

/// What tells rows apart, at any moment.
export const key = ({ role, owner, shape }: Row) => `${role}\n${owner}\n${shape}`;

/// What is alive at a moment in a timeline's memory, the largest first. Without a timeline, what is alive at the peak.
export function aliveAt({ report }: Audit, timeline: Timeline | null, moment: number): Row[] {
  const space = report.memory_spaces.find(({ memory_space }) => memory_space === (timeline?.memory_space ?? 0));
  const rows: Row[] = (space?.peak_buffers ?? [])
    .filter((row) => !timeline || stands(row))
    .map((row) => ({
      owner: sourceLabel(row.source) ?? row.op_name ?? (stands(row) ? row.role : "no line"),
      path: row.op_name ?? "",
      instruction: row.instruction,
      shape: row.shape,
      role: row.role,
      count: row.count,
      bytes: row.bytes,
      padding: row.padding_bytes,
      pieces: [],
    }));
  if (timeline) rows.push(...temporariesAt(timeline, moment));
  return largestFirst(rows);
}

/// A piece by itself, as a row.
export function rowOf(timeline: Timeline, piece: number): Row {
  const { owner, path, shape, bytes, padding } = timeline.pieces;
  return {
    owner: timeline.owners[owner[piece]!] ?? "",
    path: timeline.paths[path[piece]!] ?? "",
    instruction: names(timeline.pieces)[piece] ?? "",
    shape: timeline.shapes[shape[piece]!] ?? "",
    role: "temporary",
    count: 1,
    bytes: bytes[piece]!,
    padding: padding[piece]!,
    pieces: [piece],
  };
}

/// Equal temporaries of one line are one row.
function temporariesAt(timeline: Timeline, moment: number): Row[] {
  const known = new Map<number, Row>();
  const { owner, shape, first, last } = timeline.pieces;
  for (let piece = 0; piece < first.length; piece++) {
    if (moment < first[piece]! || moment > last[piece]!) continue;
    const same = owner[piece]! * (timeline.shapes.length + 1) + shape[piece]!;
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

function largestFirst(rows: Row[]): Row[] {
  return rows.sort((a, b) => b.bytes - a.bytes);
}

/// Rows that are called alike as one, with what is in it; one by itself stays as it is.
function together(rows: Row[], name: (row: Row) => string, called: (rows: Row[]) => string): Row[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(name(row));
    if (group) group.push(row);
    else groups.set(name(row), [row]);
  }
  return largestFirst(
    [...groups.values()].map((rows) => {
      if (rows.length === 1) return rows[0]!;
      const [first] = rows as [Row];
      const sum: Row = { ...first, count: 0, bytes: 0, padding: 0, pieces: [], owner: called(rows), rows };
      for (const row of rows) add(sum, row);
      if (rows.some(({ shape }) => shape !== first.shape)) sum.shape = "";
      if (rows.some(({ role }) => role !== first.role)) sum.role = "";
      return sum;
    }),
  );
}

/// Rows by the line that owns them, those of one role.
export function byOwner(rows: Row[]): Row[] {
  return together(rows, ({ role, owner }) => `${role}\n${owner}`, ([row]) => row!.owner);
}

const NUMBER = /\d+/g;

/// Equal arguments whose names differ only in numbers as one: 40 of `ws[i]`.
export function folded(rows: Row[]): Row[] {
  return together(
    rows,
    (row) => (row.role === "argument" && row.owner === row.path ? `${row.shape}\n${row.owner.replace(NUMBER, "#")}` : `\n${key(row)}`),
    (rows) => {
      const [first, ...others] = rows.map(({ owner }) => owner.match(NUMBER) ?? []);
      let at = -1;
      let letter = 0;
      // What is the same in all of them stays.
      return rows[0]!.owner.replace(NUMBER, (number) => (++at, others.every((numbers) => numbers[at] === first![at]) ? number : ("ijklmn"[letter++] ?? "n")));
    },
  );
}

/// The modules that something is of, the outermost first, and at last the operation or the array: the parts of its name.
export function modules({ path, owner }: Row): string[] {
  const parts = path.includes("/") ? path.replace(/^jit\([^/]*\)\//, "").split("/").map((part) => part.replace(/^(?:transpose\(|jvp\(|vmap\()+/, "").replace(/\)+$/, "")) : path.split(/[.[\]'"]+/);
  const named = parts.filter(Boolean);
  return named.length ? named : [owner];
}

/// What lies below a module, each of what it consists of as a row.
export function below(rows: Row[], module: string[]): Row[] {
  const depth = module.length;
  const inside = rows.map((row) => ({ row, parts: modules(row) })).filter(({ parts }) => module.every((name, at) => parts[at] === name));
  const part = new Map(inside.map(({ row, parts }) => [row, parts[depth] ?? parts.at(-1) ?? ""]));
  const of = (row: Row) => part.get(row) ?? "";
  return together([...part.keys()], of, ([row]) => of(row!)).map((row) => (row.rows ? row : { ...row, owner: of(row) || row.owner }));
}
