// The core, off the page's thread.

import messagesInit, * as messages from "../pkg/messages/tilewise_wasm";
import messagesUrl from "../pkg/messages/tilewise_wasm_bg.wasm?url";
import programsInit, * as programs from "../pkg/programs/tilewise_wasm";
import programsUrl from "../pkg/programs/tilewise_wasm_bg.wasm?url";
import shapesInit, * as shapes from "../pkg/shapes/tilewise_wasm";
import shapesUrl from "../pkg/shapes/tilewise_wasm_bg.wasm?url";
import { audit, buffers, columns, type Audit, type Kernel, type Report, type Summary, type Timeline, type TimelineJson } from "./program/data";
import { Text } from "./program/text";
import { UNLOADED } from "./unloaded";

/// The programs of the file that is shown; what was shown before is freed.
let opened: programs.Program[] = [];
/// The text of one of them, once it is asked for.
let text: { of: programs.Program; text: Text } | undefined;

function close(): void {
  for (const program of opened) program.free();
  opened = [];
  text = undefined;
}

const ofShapes = {
  show: shapes.show,
  draw: shapes.draw,
  place: shapes.place,
  steps: shapes.steps,
  compare: shapes.compare,
  predict: shapes.predict,
  generations: shapes.generations,
};

const ofMessages = {
  isMessage: messages.isMessage,
  explain: messages.explain,
  /// Of a log of any size, of which only the pieces that are looked at lie in memory.
  async explainFile(file: Blob): Promise<string> {
    const scanner = new messages.LogScanner(file.size);
    for (let range; (range = scanner.wanted()); ) scanner.take(new Uint8Array(await file.slice(range[0], range[1]).arrayBuffer()));
    return scanner.explain(undefined);
  },
};

const ofPrograms = {
  machines: programs.machines,
  recognise: programs.recognise,
  select: programs.select,
  /// The file's programs: their names, and bytes that they hold.
  open(name: string, bytes: Uint8Array, machine?: string): { name: string; bytes: number }[] {
    close();
    opened = programs.programs(name, bytes, machine);
    return opened.map((program) => ({ name: program.title(name), bytes: program.holds() }));
  },
  assignment: programs.assignment,
  kernels: programs.kernels,
  /// The differences between the first programs of two files.
  compareFiles(before: string, beforeBytes: Uint8Array, after: string, afterBytes: Uint8Array): string {
    close();
    opened = programs.programs(before, beforeBytes, undefined);
    const [was] = opened;
    const others = programs.programs(after, afterBytes, undefined);
    opened.push(...others);
    return others[0]!.compare(was!);
  },
  /// The bytes of the first programs of files that are loaded at once.
  together(files: { name: string; bytes: Uint8Array }[], theme: string): string {
    close();
    return programs.together(files.flatMap(({ name, bytes }) => programs.programs(name, bytes, undefined).slice(0, 1)), theme);
  },
  takePlan: (plan: Uint8Array) => opened[0]!.takePlan(plan),
  json: (at: number, all: boolean) => opened[at]!.json(all),
  /// The first view: report, short summary, timeline. Advice, which takes a plan for each change, is in the summary.
  audit(at: number): Audit {
    const { report, summary } = JSON.parse(opened[at]!.story()) as { report: Report; summary: Summary };
    return audit(report, summary, JSON.parse(opened[at]!.timeline(0)) as TimelineJson | null);
  },
  rest: (at: number) => ({ summary: JSON.parse(opened[at]!.summary()) as Summary, kernels: JSON.parse(opened[at]!.kernels()) as Kernel[] }),
  neighbours: (at: number, instruction: string) => opened[at]!.neighbours(instruction),
  span: (at: number, memorySpace: number, first: number, last: number) => opened[at]!.span(memorySpace, first, last),
  callStack: (at: number, instruction: string) => opened[at]!.callStack(instruction),
  timeline(at: number, memorySpace: number): Timeline | null {
    const timeline = JSON.parse(opened[at]!.timeline(memorySpace)) as TimelineJson | null;
    return timeline && columns(timeline);
  },
  text(at: number, call: keyof Text, ...args: unknown[]): unknown {
    const of = opened[at]!;
    text = text?.of === of ? text : { of, text: new Text(of.text()) };
    const asked = text.text;
    return (asked[call] as (...args: unknown[]) => unknown).apply(asked, args);
  },
};

const calls = { ...ofShapes, ...ofMessages, ...ofPrograms };
export type Calls = typeof calls;

/// Each part of the core is loaded when it is first asked.
const loaded: Partial<Record<"shapes" | "messages" | "programs", Promise<unknown>>> = {};

async function load(call: keyof Calls): Promise<void> {
  const part = call in ofShapes ? "shapes" : call in ofMessages ? "messages" : "programs";
  const [init, url] = { shapes: [shapesInit, shapesUrl], messages: [messagesInit, messagesUrl], programs: [programsInit, programsUrl] }[part] as [typeof shapesInit, string];
  try {
    await (loaded[part] ??= init({ module_or_path: url }));
  } catch {
    // The next question tries again.
    delete loaded[part];
    throw UNLOADED;
  }
}

/// The buffers of an answer that are transferred, not copied.
function handed(call: keyof Calls, answer: unknown): ArrayBuffer[] {
  if (call === "audit") return buffers((answer as Audit).timeline);
  return call === "timeline" ? buffers(answer as Timeline | null) : [];
}

let isBroken = false;

onmessage = async ({ data }: MessageEvent<{ id: number; call: keyof Calls; args: unknown[] }>) => {
  try {
    await load(data.call);
    if (isBroken) throw '{"kind":"memory","message":"the page has run out of memory; load it again"}';
    const call = calls[data.call] as (...args: unknown[]) => unknown;
    const answer = await call(...data.args);
    postMessage({ id: data.id, answer }, { transfer: handed(data.call, answer) });
  } catch (error) {
    // Memory that is used up aborts the core: nothing of it can be used after that.
    if (error instanceof WebAssembly.RuntimeError) {
      isBroken = true;
      const message = "the input is too large for a browser's 4 GiB of memory; the command line has no such limit";
      postMessage({ id: data.id, error: JSON.stringify({ kind: "memory", message }) });
    } else {
      postMessage({ id: data.id, error: typeof error === "string" ? error : JSON.stringify({ kind: "page", message: String(error) }) });
    }
  }
};
