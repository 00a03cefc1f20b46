// What was dropped, opened or pasted: found out by its content, not by its name.

import { ask } from "./core";

export type Input =
  | { kind: "shape" | "message" | "report"; name: string; text: string }
  | { kind: "program"; name: string; file: Blob; plan: Blob | null }
  | { kind: "assignment" | "unknown"; name: string; what: string };

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

async function head(file: Blob): Promise<Uint8Array> {
  const bytes = new Uint8Array(await file.slice(0, HEAD).arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    // The slice ends in the middle, which is an error after what was wanted.
    const reader = file.slice(0, HEAD).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
    while (length < HEAD) {
      const { value, done } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
    }
    await reader.cancel();
  } catch {
    // What was decompressed until then is enough.
  }
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}

/// Kinds that no message is taken for.
const CERTAIN = ["program", "assignment", "report", "live ranges", "values of assignments"];

async function recognised(name: string, file: Blob): Promise<Input> {
  const bytes = await head(file);
  const guess = await ask("recognise", bytes.slice());
  const kind = !CERTAIN.includes(guess) && (await ask("isMessage", bytes)) ? "message" : guess;
  switch (kind) {
    case "program":
    case "part":
      return { kind: "program", name, file, plan: null };
    case "shape":
    case "message":
    case "report":
      return { kind, name, text: await file.text() };
    case "assignment":
      return { kind, name, what: "compilers’ plans without their programs" };
    default:
      return { kind: "unknown", name, what: kind };
  }
}

/// What a pasted text is; null for nothing that is known.
export async function ofText(text: string): Promise<Input> {
  // A short line that begins as a shape is one, right or wrong: nothing else is loaded to see that.
  if (/^[\s(]*[a-z]\w*\s*\[[^\n=]{0,2000}$/i.test(text)) return { kind: "shape", name: "pasted text", text };
  return recognised("pasted text", new Blob([text]));
}

/// The stages of a dump at which a program is final, the best first.
const FINAL = [
  "after_optimizations",
  "after_codegen",
  "after_optimizations_after_buffer_assignment",
  "after_optimizations_before_buffer_assignment",
];

/// What the files of one program have in common in their names, and the stage that the rest names.
function familyAndStage(path: string): [string, string] {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  let stem = path.slice(folder.length);
  for (let end; (end = [".gz", ".pb", ".hlo", ".txt"].find((end) => stem.endsWith(end))); ) stem = stem.slice(0, -end.length);
  stem = stem.replace(/-buffer-assignment$/, "");
  const parts = stem.split(".");
  if (parts.length >= 3 && parts[0]?.startsWith("module_")) return [`${folder}${parts[0]}.${parts[1]}`, parts.at(-1) ?? ""];
  return [folder + stem, ""];
}

function rank(stage: string): number {
  const at = FINAL.findIndex((last) => stage === last || stage.endsWith(`_${last}`));
  return at >= 0 ? at : stage.startsWith("before") ? 9 : FINAL.length;
}

/// Of many files the final programs, each with its plan, as the command line takes them from a folder.
export async function ofFiles(entries: Entry[]): Promise<Taken> {
  const left = new Map<string, number>();
  const leave = (what: string) => left.set(what, (left.get(what) ?? 0) + 1);
  const families = new Map<string, { stage: string; path: string; input: Input; file: File }[]>();
  const inputs: Input[] = [];
  for (const { path, file } of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const input = await recognised(path, file);
    if (input.kind !== "program" && input.kind !== "assignment") {
      if (entries.length > 1 && input.kind !== "message" && input.kind !== "report") leave(input.kind === "unknown" ? input.what : "shapes");
      else inputs.push(input);
      continue;
    }
    const [family, stage] = familyAndStage(path);
    families.set(family, [...(families.get(family) ?? []), { stage, path, input, file }]);
  }
  for (const members of families.values()) {
    const programs = members.filter((member) => member.input.kind === "program");
    programs.sort((a, b) => rank(a.stage) - rank(b.stage) || Number(isProto(a.path)) - Number(isProto(b.path)));
    const [best, ...others] = programs;
    const plans = members.filter((member) => member.input.kind === "assignment");
    if (!best || best.input.kind !== "program") {
      for (const { input } of plans) inputs.push(input);
      continue;
    }
    for (const other of others) leave(other.stage === best.stage ? "the same programs again" : "other stages of programs");
    const plan = plans.find((member) => member.stage === best.stage) ?? plans[0];
    for (const other of plans) if (other !== plan) leave("plans of other programs");
    inputs.push({ ...best.input, plan: plan?.file ?? null });
  }
  return { inputs, left: [...left].map(([what, count]) => `${what} (${count})`) };
}

function isProto(path: string): boolean {
  return path.replace(/\.gz$/, "").endsWith(".pb");
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
