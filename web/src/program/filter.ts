// Filters of rows: `bf16 size>1GiB line:train alive:peak`. A word alone may stand anywhere in a row.

import type { Row } from "./rows";

/// The fields of a row that a filter names, each with its text.
const FIELDS: Record<string, (row: Row) => string> = {
  line: (row) => row.owner,
  op: (row) => `${row.path} ${row.instruction}`,
  shape: (row) => row.shape,
  dtype: (row) => row.shape.split("[")[0]!,
  role: (row) => row.role,
  module: (row) => row.module,
};

export const HELP = "Filter: words, size>1GiB, dtype:bf16, alive:peak, line:, op:, shape:, role:, module:";

/// Bytes of `1GiB`, `1.5g` or `4096`.
function amount(text: string): number {
  const [, number = "", unit = ""] = /^([\d.]+)([kmgt]?)(?:i?b)?$/.exec(text) ?? [];
  return number ? Number(number) * 1024 ** " kmgt".indexOf(unit || " ") : NaN;
}

type Test = (row: Row) => boolean;

function test(word: string, isAlive: (row: Row, moment: "peak" | number) => boolean): Test {
  const [, name = "", sign = "", text = ""] = /^(\w+)(:|[<>]=?)(.*)$/.exec(word) ?? [];
  const field = FIELDS[name];
  if (field && sign === ":") return (row) => field(row).toLowerCase().includes(text);
  if (name === "size" && sign && sign !== ":") {
    const limit = amount(text);
    const [least, most] = sign.startsWith(">") ? [limit, Infinity] : [0, limit];
    // While it is typed, it leaves out nothing.
    return ({ bytes }) => Number.isNaN(limit) || (bytes >= least && bytes <= most && (sign.endsWith("=") || bytes !== limit));
  }
  if (name === "alive" && sign === ":") {
    if (text === "peak") return (row) => isAlive(row, "peak");
    if (/^\d+$/.test(text)) return (row) => isAlive(row, Number(text) - 1);
  }
  return (row) => Object.values(FIELDS).some((field) => field(row).toLowerCase().includes(word));
}

/// Whether a row, or one that is together with others in it, is all that a filter asks; `isAlive` says whether it is alive at a
/// moment.
export function filter(words: string, isAlive: (row: Row, moment: "peak" | number) => boolean): Test {
  const tests = words.trim().toLowerCase().split(/\s+/).map((word) => test(word, isAlive));
  const matches: Test = (row) => row.rows?.some(matches) || tests.every((test) => test(row));
  return matches;
}
