// A file's programs, read by the core: which of them is shown, for which machine, and its view.

import { ask, drawn, json } from "../core";
import { bytes, download, el, fill, grouped, type Source } from "../dom";
import type { Entry, Input } from "../input";
import type { Look } from "../state";
import type { Remark } from "./data";
import type { Neighbours } from "./graph";
import { programView } from "./view";

/// A file's program, or several, of which one is shown.
export interface Opened {
  element: HTMLElement;
  /// The sentence on the compiler's own plan, where plans were looked for.
  plan: string;
}

export interface OpenOptions {
  look: Look;
  /// Hears how it is looked at from now on.
  looked: (look: Look) => void;
  /// Reads it again for another machine.
  again: (look: Look) => void;
  /// Whether it is still wanted.
  isWanted: () => boolean;
}

export async function openProgram(input: Input & { kind: "program" }, options: OpenOptions): Promise<Opened | null> {
  const { look, looked, isWanted } = options;
  const content = new Uint8Array(await input.file.arrayBuffer());
  if (!isWanted()) return null;
  const programs = await ask("open", input.name, content, look.machine);
  const plan = await takePlan(input.plans, isWanted);
  if (!isWanted()) return null;
  const shown = el("div", {});
  const choose = async (at: number) => fill(shown, await program(at, programs.length, input, options));
  // The largest is what a profile is opened for.
  const order = programs.map((_, at) => at).sort((a, b) => programs[b]!.bytes - programs[a]!.bytes || a - b);
  const first = look.at !== undefined && look.at < programs.length ? look.at : (order[0] ?? 0);
  const which = el(
    "select",
    {
      class: "programs",
      "aria-label": "Program",
      onchange() {
        delete look.shown;
        look.at = Number(which.value);
        looked(look);
        void choose(look.at);
      },
    },
    order.map((at, k) => el("option", { value: at, selected: at === first }, `${k + 1} of ${grouped(programs.length)}: ${programs[at]!.name}, ${bytes(programs[at]!.bytes)}`)),
  );
  await choose(first);
  const whose = plan ? `The compiler’s own plan is ${plan}.` : "No file there has the compiler’s own plan of it.";
  return isWanted() ? { element: el("div", {}, programs.length > 1 && which, shown), plan: input.plans.length ? whose : "" } : null;
}

/// Gives the program that was opened the first of these plans that is its own; the path of that.
async function takePlan(plans: Entry[], isWanted: () => boolean): Promise<string | undefined> {
  for (const { path, file } of plans) {
    const plan = new Uint8Array(await file.arrayBuffer());
    if (!isWanted()) return undefined;
    if (await ask("takePlan", plan)) return path;
  }
  return undefined;
}

async function program(at: number, count: number, input: Input & { kind: "program" }, { look, looked, again }: OpenOptions): Promise<HTMLElement> {
  const shown = await ask("audit", at);
  document.title = `${shown.summary?.title ?? input.name} – tilewise`;
  const machine = await machines(shown.report.machine, look.machine, (machine) => again({ ...look, machine }));
  // A line a program, as the command line prints them.
  const lines = async () => {
    const lines: string[] = [];
    for (let at = 0; at < count; at++) lines.push(await ask("json", at, true), "\n");
    download(`${input.name}.json`, new Blob(lines));
  };
  const save = el("button", { type: "button", onclick: lines }, "Save JSON");
  return programView(shown, {
    pictures: (shape) => drawn(shape),
    rest: ask("rest", at),
    timelines: (memorySpace) => ask("timeline", at, memorySpace),
    texts: { ask: (call, ...args) => ask("text", at, call, ...args) as never },
    neighbours: (instruction) => json<Neighbours | null>("neighbours", at, instruction),
    spans: (memorySpace, first, last) => json<Remark[]>("span", at, memorySpace, first, last),
    stack: (instruction) => json<Source[]>("callStack", at, instruction),
    shown: look.shown,
    changed: (shown) => looked(Object.assign(look, { shown })),
    actions: [machine, save],
  });
}

/// The machines that a program of one of them may be for: a TPU's arrays lie in tiles, others' don't.
async function machines(of: string, chosen: string | undefined, choose: (machine: string) => void): Promise<HTMLElement> {
  const isTpu = (machine: string) => machine.startsWith("tpu:");
  const names = (await json<string[]>("machines")).filter((name) => isTpu(name) === isTpu(of));
  const now = chosen || of;
  const options = names.includes(now) ? names : ["", ...names];
  const label = (name: string) => (isTpu(of) ? `TPU ${name.slice(4)}` : name) || "machine …?";
  const select = el("select", { "aria-label": isTpu(of) ? "The TPU it must fit" : "The machine it is compiled for", onchange: () => choose(select.value) }, options.map((name) => el("option", { value: name, selected: name === now }, name ? label(name) : "machine …?")));
  return select;
}
