// The core, off the page's thread.

import init, * as core from "../pkg/tilewise_wasm";
import url from "../pkg/tilewise_wasm_bg.wasm?url";

const ready = init({ module_or_path: url });
/// The programs of the file that is shown; what was shown before is freed.
let programs: core.Program[] = [];

const calls = {
  recognise: core.recognise,
  explain: core.explain,
  show: core.show,
  draw: core.draw,
  place: core.place,
  steps: core.steps,
  compare: core.compare,
  predict: core.predict,
  open(name: string, bytes: Uint8Array, plan?: Uint8Array, tpu?: string): number {
    for (const program of programs) program.free();
    programs = [];
    programs = core.programs(name, bytes, plan, tpu, undefined);
    return programs.length;
  },
  json: (at: number, all: boolean) => programs[at]?.json(all) ?? "null",
  timeline: (at: number, space: number) => programs[at]?.timeline(space) ?? "null",
  facts: (at: number) => programs[at]?.facts() ?? "null",
};

export type Calls = typeof calls;

let isBroken = false;

onmessage = async ({ data }: MessageEvent<{ id: number; call: keyof Calls; args: unknown[] }>) => {
  try {
    await ready;
    if (isBroken) throw '{"kind":"memory","message":"the page has run out of memory; load it again"}';
    const call = calls[data.call] as (...args: unknown[]) => unknown;
    postMessage({ id: data.id, answer: call(...data.args) });
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
