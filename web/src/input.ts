// What was dropped, opened or pasted: found out by its content, not by its name.

import { ask, json } from "./core";

export type Input =
  | { kind: "shape" | "report"; name: string; text: string }
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

/// What of several files was taken, and how much of what else was left.
export interface Taken {
  inputs: Input[];
  left: string[];
}

/// Bytes that tell what a file is.
const HEAD = 1 << 20;

/// Bytes of a report that are decompressed, and of a log.
const WHOLE = 64 << 20;
const LONGEST_LOG = 1 << 30;

/// A file's bytes, and of gzip what it holds: that ends at the limit, or where the data is cut off.
async function decompressed(file: Blob, limit: number): Promise<Blob> {
  const magic = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (magic[0] !== 0x1f || magic[1] !== 0x8b) return file;
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
    // What was decompressed until then is enough.
  }
  return new Blob(parts as BlobPart[]).slice(0, limit);
}

/// Kinds that no message is taken for.
const CERTAIN = ["program", "proto", "profile", "buffer_assignment", "report", "live_ranges", "assignment_values"];

/// How programs, dumps and reports begin, and what is no text; and words of messages. They only tell what is asked
/// first: a message needs but the smaller part of the core.
const PROGRAM = /^HloModule|^BufferAssignment|^\s*\{|\0/m;
const MESSAGE = /RESOURCE_?EXHAUSTED|out of memory|exceed|usage >=|Largest program|vmem|hbm/i;

/// What a file is: `message`, or a kind that the core names.
async function kindOf(file: Blob): Promise<string> {
  const bytes = new Uint8Array(await (await decompressed(file.slice(0, HEAD), HEAD)).arrayBuffer());
  if (!bytes.length) return "empty";
  const head = new TextDecoder().decode(bytes.subarray(0, 1 << 12));
  const isMessage = async () => ask("isMessage", bytes.slice());
  if (!PROGRAM.test(head) && MESSAGE.test(new TextDecoder().decode(bytes)) && (await isMessage())) return "message";
  const guess = await ask("recognise", bytes.slice());
  if (CERTAIN.includes(guess)) return guess;
  // Most of a log may stand before its message.
  const isLog = bytes.length >= HEAD && !head.includes("\0") && guess !== "part";
  return isLog || (await isMessage()) ? "message" : guess;
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
      return { kind: "program", name, file, plans: [] };
    case "shape":
      return { kind: "shape", name, text: await text() };
    case "message":
      return { kind: "message", name, file: await decompressed(file, LONGEST_LOG) };
    case "report":
      return { kind: "report", name, text: await text() };
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

/// What a pasted text is; null for nothing that is known.
export async function ofText(text: string): Promise<Input> {
  // A short line that begins as a shape is one, right or wrong: nothing else is loaded to see that.
  if (/^[\s(]*[a-z]\w*\s*\[[^\n=]{0,2000}$/i.test(text)) return { kind: "shape", name: "pasted text", text };
  const file = new Blob([text]);
  return inputOf("pasted text", file, await kindOf(file));
}

/// Kinds that are shown wherever they lie, and belong to no program of a dump.
const ALONE = ["message", "report", "part"];

/// Of many files the final programs, each with what may be its plan, as the command line takes them from a folder.
export async function ofFiles(entries: Entry[]): Promise<Taken> {
  const inputs: Input[] = [];
  const dump: (Entry & { kind: string })[] = [];
  for (const { path, file } of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const kind = await kindOf(file);
    if (entries.length === 1 || ALONE.includes(kind)) inputs.push(await inputOf(path, file, kind));
    else dump.push({ path, file, kind });
  }
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
