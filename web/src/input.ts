// Inputs that were dropped, opened or pasted: recognised by their content, not by their name.

import { ask, json } from "./core";

export type Input =
  | { kind: "shape" | "kernel" | "report"; name: string; text: string }
  /// A log may be too long to be a text.
  | { kind: "message"; name: string; file: Blob }
  /// The first of the plans that is the program's, if any, is the compiler's own of it.
  | { kind: "program"; name: string; file: Blob; plans: Entry[] }
  /// Two programs, before and after a change.
  | { kind: "pair"; name: string; files: [Named, Named] }
  /// Programs that are loaded at once.
  | { kind: "set"; name: string; files: Named[] }
  /// A compiler's plan without its program.
  | { kind: "assignment"; name: string; file: Blob }
  | { kind: "unknown"; name: string; what: string };

export interface Named {
  name: string;
  file: Blob;
}

/// A file with its path within what was dropped.
export interface Entry {
  path: string;
  file: File;
}

/// The inputs taken of several files, and how much of the others was left.
export interface Taken {
  inputs: Input[];
  left: string[];
}

/// Bytes that tell what a file is.
const HEAD = 1 << 20;

/// Bytes of a report that are decompressed, and of a log.
const WHOLE = 64 << 20;
const LONGEST_LOG = 1 << 30;

const magic = async (file: Blob) => String(new Uint8Array(await file.slice(0, 2).arrayBuffer()));

/// UTF-16 text, as consoles of Windows write it, as UTF-8; other files as they are.
async function utf8(file: Blob, limit: number): Promise<Blob> {
  const encoding = { "255,254": "utf-16le", "254,255": "utf-16be" }[await magic(file)];
  return encoding ? new Blob([new TextDecoder(encoding).decode(await file.slice(0, limit).arrayBuffer())]) : file;
}

/// A file's text or bytes, and of gzip what it holds: that ends at the limit, or where the data is cut off.
async function decompressed(file: Blob, limit: number): Promise<Blob> {
  if ((await magic(file)) !== "31,139") return utf8(file, limit);
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
    while (length < limit) {
      const { value, done } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
    }
    await reader.cancel();
  } catch {
    // The part that was decompressed until then is enough.
  }
  return new Blob(parts as BlobPart[]).slice(0, limit);
}

/// Kinds that no message is taken for.
const CERTAIN = ["program", "proto", "profile", "buffer_assignment", "report", "live_ranges", "assignment_values"];

/// How programs, dumps and reports begin, and what is no text; and words of messages. They only tell what is asked
/// first: a message needs but the smaller part of the core.
const PROGRAM = /^HloModule|^BufferAssignment|^\s*\{|\0/m;
const MESSAGE = /RESOURCE_?EXHAUSTED|out of memory|exceed|usage >=|Largest program|vmem|hbm/i;

/// Words without a bracket: no shape, and nothing else that is known.
export const PROSE = /^[^[\]{}=]*\s[^[\]{}=]*$/;

/// The beginning of a lowered program, of which the core says that it is to be compiled.
const LOWERED = /^\s*(#\w+ = |module[ @]|builtin\.module)/;

/// Whether a text describes Pallas kernels: each line begins with one of the notation's words, and one has a grid or an
/// operand.
function isKernel(text: string): boolean {
  const lines = text.split("\n");
  return lines.every((line) => /^\s*(#|---\s*$|(tpu|grid|prefetch|in|out|scratch|limit|body|name)\s|$)/.test(line)) && lines.some((line) => /^\s*(grid\s+\d|(in|out)\s+\w+\[)/.test(line));
}

/// The kind of a file: `message`, `kernel`, or a kind that the core names.
async function kindOf(file: Blob): Promise<string> {
  const bytes = new Uint8Array(await (await decompressed(file.slice(0, HEAD), HEAD)).arrayBuffer());
  if (!bytes.length) return "empty";
  const head = new TextDecoder().decode(bytes.subarray(0, 1 << 12));
  if (isKernel(head) && isKernel(new TextDecoder().decode(bytes))) return "kernel";
  const isMessage = async (bytes: Uint8Array) => MESSAGE.test(new TextDecoder().decode(bytes)) && (await ask("isMessage", bytes.slice()));
  // Most of a log may stand before its message.
  const end = async () => new Uint8Array(await file.slice(-HEAD).arrayBuffer());
  if (!PROGRAM.test(head) && ((await isMessage(bytes)) || (file.size > HEAD && (await isMessage(await end()))))) return "message";
  const guess = await ask("recognise", bytes.slice());
  if (CERTAIN.includes(guess)) return guess;
  if (LOWERED.test(head)) return "program";
  const isLog = bytes.length >= HEAD && !head.includes("\0") && guess !== "part";
  return isLog || (await ask("isMessage", bytes)) ? "message" : guess;
}

/// The data inside one of our reports of one file.
async function embedded(file: Blob): Promise<string | null> {
  if (!/^\s*<!doctype html/i.test(await file.slice(0, 100).text())) return null;
  const page = new DOMParser().parseFromString(await file.slice(0, WHOLE).text(), "text/html");
  return page.querySelector("#report")?.textContent ?? null;
}

async function inputOf(name: string, file: Blob, kind: string): Promise<Input> {
  const text = async () => (await decompressed(file, WHOLE)).text();
  switch (kind) {
    case "program":
    case "proto":
    case "profile":
    case "part":
      return { kind: "program", name, file: await utf8(file, LONGEST_LOG), plans: [] };
    case "shape": {
      const shape = await text();
      return PROSE.test(shape.trim()) ? { kind: "unknown", name, what: "words" } : { kind: "shape", name, text: shape };
    }
    case "message":
      return { kind: "message", name, file: await decompressed(file, LONGEST_LOG) };
    case "kernel":
    case "report":
      return { kind, name, text: await text() };
    case "buffer_assignment":
      return { kind: "assignment", name, file };
    case "empty":
      return { kind: "unknown", name, what: "the file is empty" };
    default: {
      const inside = await embedded(file);
      return inside ? { kind: "report", name, text: inside } : { kind: "unknown", name, what: kind.replaceAll("_", " ") };
    }
  }
}

/// The input that a pasted text is; of kind `unknown` if not recognised.
export async function ofText(text: string): Promise<Input> {
  // A short line that begins as a shape is one, right or wrong: nothing else is loaded to see that.
  if (/^[\s(]*[a-z]\w*\s*\[[^\n=]{0,2000}$/i.test(text)) return { kind: "shape", name: "pasted text", text };
  const file = await blobOf(text);
  return inputOf("pasted text", file, await kindOf(file));
}

/// Units of a text that are copied at once, which takes some milliseconds.
const PART = 1 << 20;

/// A text as bytes; of a long one part after part, and the page answers in between.
async function blobOf(text: string): Promise<Blob> {
  const parts: Blob[] = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + PART, text.length);
    // A character of two units stays whole.
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end -= 1;
    parts.push(new Blob([text.slice(at, end)]));
    at = end;
    if (at < text.length) await new Promise((done) => setTimeout(done));
  }
  return new Blob(parts);
}

/// Kinds that are shown wherever they lie, and belong to no program of a dump.
const ALONE = ["message", "kernel", "report", "part"];

/// Of many files the final programs, each with what may be its plan, as the command line takes them from a folder.
export async function ofFiles(entries: Entry[]): Promise<Taken> {
  const inputs: Input[] = [];
  const dump: (Entry & { kind: string })[] = [];
  for (const { path, file } of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const kind = await kindOf(file);
    if (entries.length === 1 || ALONE.includes(kind)) inputs.push(await inputOf(path, file, kind));
    else dump.push({ path, file, kind });
  }
  // Nothing to choose from: a dropped log doesn't wait for the programs' core.
  if (!dump.length) return { inputs, left: [] };
  const paths = dump.map(({ path }) => path);
  const kinds = dump.map(({ kind }) => kind);
  const { programs, left } = await json<{ programs: { file: number; plans: number[] }[]; left: [string, number][] }>("select", paths, kinds);
  for (const { file: at, plans } of programs) {
    const { path, file, kind } = dump[at]!;
    const input = await inputOf(path, file, kind);
    inputs.push(input.kind === "program" ? { ...input, plans: plans.map((plan) => dump[plan]!) } : input);
  }
  return { inputs, left: left.map(([what, count]) => `${what} (${count})`) };
}

const EARLIER = /(^|[^a-z])(before|old|base|baseline|main|prev|previous)([^a-z]|$)/i;
const LATER = /(^|[^a-z])(after|new|head|next)([^a-z]|$)/i;

/// Two files of a change in its order: as their names say, else the older one first, else as they were given.
export function inOrder<T extends { name: string; file: Blob }>([first, second]: [T, T]): [T, T] {
  const rank = ({ name }: T) => Number(LATER.test(name)) - Number(EARLIER.test(name));
  const time = ({ file }: T) => (file instanceof File ? file.lastModified : 0);
  const by = rank(first) - rank(second) || time(first) - time(second);
  return by > 0 ? [second, first] : [first, second];
}

/// The files in what was dropped, and in the folders of that.
export async function dropped(transfer: DataTransfer): Promise<Entry[]> {
  const roots = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry != null);
  if (!roots.length) return [...transfer.files].map((file) => ({ path: file.name, file }));
  const entries: Entry[] = [];
  const open = [...roots];
  for (let entry; (entry = open.pop()); ) {
    if (entry.isDirectory) {
      const reader = (entry as FileSystemDirectoryEntry).createReader();
      // It answers with some at a time, at last with none.
      for (;;) {
        const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
        if (!some.length) break;
        open.push(...some);
      }
    } else {
      const found = entry as FileSystemFileEntry;
      const file = await new Promise<File>((done, failed) => found.file(done, failed));
      entries.push({ path: found.fullPath.replace(/^\//, ""), file });
    }
  }
  return entries;
}
