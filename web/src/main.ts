// The page: one input for everything, what it is said to be, and its view. State lives here, and in the address.

import "./style.css";
import { ask, CoreError, drawn, json, stop, UNLOADED } from "./core";
import { bytes, copy, download, el, fill, tabs, theme } from "./dom";
import { failure } from "./failure";
import { GALLERY, type Example } from "./gallery";
import { dropped, ofFiles, ofText, type Entry, type Input } from "./input";
import { keep, kept } from "./kept";
import { messageView, type Explained } from "./message/view";
import type { ComparisonPage } from "./program/compare";
import { audit, type Report } from "./program/data";
import { decode, encode, type State } from "./state";

let state: State = { view: "home" };
/// Counts what is being opened: what comes late of something older is dropped.
let opening = 0;

const box = el("textarea", {
  class: "input",
  rows: 1,
  spellcheck: "false",
  autocapitalize: "off",
  placeholder: "Paste the message that begins with RESOURCE_EXHAUSTED, HLO text or a shape — or drop a file, a log or a dump folder anywhere",
  "aria-label": "A shape, an out-of-memory message or HLO text",
});
const status = el("p", { class: "status", role: "status" });
const view = el("main", { id: "view" });
/// What was opened together.
const files = el("nav", { "aria-label": "Opened together" });
const file = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files" });
const folder = el("input", { type: "file", webkitdirectory: true, hidden: true, "aria-label": "A folder" });
const link = el("button", { type: "button", onclick: () => void copyLink() }, "Copy link");

fill(
  document.querySelector("#page")!,
  el(
    "header",
    { class: "top" },
    el("a", { class: "home", href: "#", title: "To the beginning" }, "tilewise"),
    el("button", { type: "button", onclick: () => file.click() }, "Open…"),
    el("button", { type: "button", onclick: () => folder.click() }, "Folder…"),
    link,
    el("button", { type: "button", "aria-label": "Light or dark", onclick: () => theme(true) }, "◐"),
    box,
    file,
    folder,
    status,
  ),
  files,
  view,
);

/// Whether a state gets an entry of its own in the history: what is typed takes the place of what was typed before.
type Push = boolean | "typed";

/// Shows a state, and remembers it in the address; an input that is too large for that, in this browser.
async function remember(next: State, push: Push = true, input?: Input): Promise<void> {
  state = next;
  let encoded = await encode(next).catch(() => null);
  if (state !== next) return;
  if (encoded === null && input) {
    const id = `${Date.now()}`;
    state = { ...next, kept: id } as State;
    encoded = await encode(state);
    void keep(id, input).catch(() => (link.title = "Too large for a link, and this browser doesn’t keep it"));
  }
  link.disabled = encoded === null || "kept" in state;
  link.title = link.disabled ? "Too large for a link; this browser keeps it for Back and Reload" : "";
  const hash = encoded ? `#${encoded}` : location.pathname + location.search;
  if (encoded === null || location.hash === (encoded && hash)) return;
  const isTyped = (history.state as { typed?: boolean } | null)?.typed ?? false;
  history[push === true || (push === "typed" && !isTyped) ? "pushState" : "replaceState"]({ typed: push === "typed" }, "", hash);
}

async function copyLink(): Promise<void> {
  const encoded = await encode(state);
  if (encoded !== null) await copy(link, `${location.href.split("#")[0]}#${encoded}`);
}

/// What shows programs and shapes is loaded with the first of them, as the core is.
const unloaded = () => {
  throw new CoreError(UNLOADED);
};
const views = {
  program: () => import("./program/view").catch(unloaded),
  compare: () => import("./program/compare").catch(unloaded),
  shape: () => import("./shape/view").catch(unloaded),
};

const LARGE = 200_000;

/// The layout's picture, for rows of tables.
const pictures = (shape: string) => drawn(shape);

function home(): void {
  fill(files);
  box.value = "";
  grow();
  status.textContent = "";
  document.title = "tilewise";
  fill(
    view,
    el("h1", {}, "Why does my TPU program run out of memory?"),
    el("p", { class: "lead" }, "Paste the message, or drop the log or the compiled program: what it holds and why, which line owns it, and what to change first. And where the elements of a tiled array lie. All of it is worked out on this page: nothing is uploaded."),
    Object.entries(GALLERY).map(([title, examples]) => el("section", {}, el("h2", {}, title), el("ul", { class: "gallery" }, examples.map((example) => el("li", {}, card(example)))))),
  );
}

function card(example: Example): HTMLElement {
  const open = async () => {
    if (example.text) return show({ view: "shape", text: example.text });
    const file = await (await fetch(example.url!)).blob();
    await openInput(example.name ? { kind: "program", name: example.name, file, plans: [] } : { kind: "message", name: example.title, file });
  };
  return el("button", { type: "button", onclick: () => void open().catch(fail) }, el("strong", { class: example.text ? "mono" : "" }, example.title), el("span", { class: "muted" }, example.about));
}

function fail(error: unknown, text = ""): void {
  if (error instanceof CoreError && error.kind === "stopped") return;
  status.textContent = "";
  const again = error instanceof CoreError && error.kind === "load" && el("button", { type: "button", onclick: () => void show(state, false) }, "Try again");
  fill(view, el("h1", {}, "This can’t be shown"), failure(error, text), again);
}

/// Shows what an address or a click asks for.
async function show(next: State, push: Push = true): Promise<void> {
  const mine = ++opening;
  await remember(next, push);
  if ("kept" in next && next.kept !== undefined) {
    const input = await kept(next.kept).catch(() => undefined);
    if (mine !== opening) return;
    if (input) return openInput(input, next);
    return fail(new Error("This address stands for an input that was too large for a link: it lay in the browser where it was opened. Open the file again."));
  }
  switch (next.view) {
    case "home":
      return home();
    case "shape":
      box.value = next.text;
      grow();
      return showShape(next.text, next, mine);
    case "message":
      box.value = next.text ?? "";
      grow();
      return next.text === undefined ? home() : showMessage({ kind: "message", name: "message", file: new Blob([next.text]) }, next.text, mine);
    case "damaged":
      return fail(new Error("This link is damaged. Ask for it again, or open the file itself."));
    case "pair":
      return home();
    case "program":
      if (next.text === undefined) return home();
      return showProgram({ kind: "program", name: next.name, file: new Blob([next.text]), plans: [] }, next, mine);
    case "report":
      return next.text === undefined ? home() : showReport(next.text, mine);
  }
}

/// Shows an input; `entry` is that of the history which it is of already.
async function openInput(input: Input, entry?: { kept?: string; machine?: string }, push: Push = true): Promise<void> {
  const mine = ++opening;
  const text = async (file: Blob) => (file.size < LARGE ? await readable(file) : undefined);
  const enter = (next: State) => (entry ? remember({ ...next, kept: entry.kept } as State, false) : remember(next, push, input));
  switch (input.kind) {
    case "shape":
      return show({ view: "shape", text: input.text.trim() }, push);
    case "message": {
      const message = await text(input.file);
      await enter({ view: "message", name: input.name, ...(message !== undefined && { text: message }) });
      return showMessage(input, message, mine);
    }
    case "report":
      await enter({ view: "report", name: input.name, ...(input.text.length < LARGE && { text: input.text }) });
      return showReport(input.text, mine);
    case "program": {
      const program = input.plans.length ? undefined : await text(input.file);
      const next: State = { view: "program", name: input.name, ...(program !== undefined && { text: program }), ...(entry?.machine && { machine: entry.machine }) };
      await enter(next);
      return showProgram(input, next, mine);
    }
    case "pair":
      await enter({ view: "pair", name: input.name });
      return showPair(input, mine);
    default:
      status.textContent = `${input.name}: nothing that is known here (${input.what}). Known are out-of-memory messages and logs, HLO text and protos, dumps, reports, and shapes.`;
  }
}

/// A file's text; nothing for a proto or gzip.
async function readable(file: Blob): Promise<string | undefined> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    return undefined;
  }
}

async function showShape(text: string, options: { other?: string; picture?: string }, mine: number): Promise<void> {
  try {
    const { shapeView } = await views.shape();
    const shown = await shapeView(text, {
      other: options.other,
      picture: options.picture,
      changed: ({ other, picture }) => void remember({ view: "shape", text, ...(other && { other }), ...(picture && picture !== "both" && { picture }) }, false),
      open: (shape) => void show({ view: "shape", text: shape }),
    });
    if (mine !== opening) return;
    status.textContent = "";
    document.title = `${text} – tilewise`;
    fill(view, shown);
  } catch (error) {
    if (mine === opening) fail(error, text);
  }
}

/// The message that a text or a log holds; the text is shown with it where it is short.
async function showMessage({ name, file }: Input & { kind: "message" }, text: string | undefined, mine: number): Promise<void> {
  if (text === undefined) fill(status, `Looking for the message in ${name}, ${bytes(file.size)} … `, el("button", { type: "button", onclick: () => (stop(), ++opening, home()) }, "Stop"));
  try {
    const explained = await json<Explained>("explainFile", file);
    if (mine !== opening) return;
    status.textContent = text === undefined ? `Found in ${name}, ${bytes(file.size)}.` : "";
    document.title = "Out of memory – tilewise";
    fill(view, messageView(explained, text ?? "", pictures));
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

/// Which of what was opened is a program that is being read; 0 for none.
let reading = 0;

async function showProgram(input: Input & { kind: "program" }, options: { machine?: string; moment?: number }, mine: number): Promise<void> {
  // A program that is being read is given up for the next.
  if (reading) stop();
  reading = mine;
  const cancel = el("button", { type: "button", onclick: () => (stop(), ++opening, home()) }, "Stop");
  fill(status, `Reading ${input.name}, ${bytes(input.file.size)} … `, cancel);
  fill(view);
  box.value = "";
  try {
    const content = new Uint8Array(await input.file.arrayBuffer());
    if (mine !== opening) return;
    const names = await ask("open", input.name, content, options.machine);
    const plan = await takePlan(input.plans, mine);
    if (mine !== opening) return;
    const shown = el("div", {});
    const choose = async (at: number) => fill(shown, await program(at, names.length, input, options));
    const which = el("select", { "aria-label": "Program", onchange: () => void choose(Number(which.value)) }, names.map((name, at) => el("option", { value: at }, `${at + 1} of ${names.length}: ${name}`)));
    await choose(0);
    if (mine !== opening) return;
    const whose = plan ? `The compiler’s own plan is ${plan}.` : "No file there has the compiler’s own plan of it.";
    status.textContent = [left, input.plans.length && whose].filter(Boolean).join(" ");
    fill(view, names.length > 1 && which, shown);
  } catch (error) {
    if (mine === opening) fail(error);
  } finally {
    if (reading === mine) reading = 0;
  }
}

/// Gives the program that was opened the first of these plans that is its own; the path of that.
async function takePlan(plans: Entry[], mine: number): Promise<string | undefined> {
  for (const { path, file } of plans) {
    const plan = new Uint8Array(await file.arrayBuffer());
    if (mine !== opening) return undefined;
    if (await ask("takePlan", plan)) return path;
  }
  return undefined;
}

async function program(at: number, count: number, input: Input & { kind: "program" }, options: { machine?: string; moment?: number }): Promise<HTMLElement> {
  const shown = await ask("audit", at);
  document.title = `${shown.summary?.title ?? input.name} – tilewise`;
  const machine = await machines(shown.report.machine, options.machine ?? "", (machine) => {
    const next = { ...state, machine } as State;
    void remember(next).then(() => showProgram(input, { machine }, ++opening));
  });
  // A line a program, as the command line prints them.
  const lines = async () => {
    const lines: string[] = [];
    for (let at = 0; at < count; at++) lines.push(await ask("json", at, true), "\n");
    download(`${input.name}.json`, new Blob(lines));
  };
  const save = el("button", { type: "button", onclick: lines }, "Save JSON");
  const { programView } = await views.program();
  return programView(shown, {
    pictures,
    summary: ask("summary", at),
    timelines: (memorySpace) => ask("timeline", at, memorySpace),
    texts: { ask: (call, ...args) => ask("text", at, call, ...args) as never },
    moment: options.moment,
    moved: (moment) => void (state.view === "program" && (state = { ...state, moment })),
    actions: [machine, save],
  });
}

/// The machines that a program of one of them may be for: a TPU's arrays lie in tiles, others' don't.
async function machines(of: string, chosen: string, choose: (machine: string) => void): Promise<HTMLElement> {
  const isTpu = (machine: string) => machine.startsWith("tpu:");
  const names = (await json<string[]>("machines")).filter((name) => isTpu(name) === isTpu(of));
  const select = el(
    "select",
    { "aria-label": isTpu(of) ? "The TPU it must fit" : "The machine it is compiled for", onchange: () => choose(select.value) },
    ["", ...names].map((name) => el("option", { value: name, selected: name === chosen }, name.replace("tpu:", "") || (isTpu(of) ? "Does it fit …?" : "machine …?"))),
  );
  return select;
}

async function showPair({ files: [before, after] }: Input & { kind: "pair" }, mine: number): Promise<void> {
  status.textContent = `Reading ${before.name} and ${after.name} …`;
  fill(view);
  try {
    const bytes = async ({ file }: { file: Blob }) => new Uint8Array(await file.arrayBuffer());
    const comparison = await json<ComparisonPage>("compareFiles", before.name, await bytes(before), after.name, await bytes(after));
    const { compareView } = await views.compare();
    if (mine !== opening) return;
    status.textContent = "";
    document.title = `${before.name} → ${after.name} – tilewise`;
    const swap = el("button", { type: "button", onclick: () => void openInput(pair(after, before)) }, "Swap");
    fill(view, compareView(comparison, [swap]));
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

/// Two programs to be compared, before and after.
function pair(before: { name: string; file: Blob }, after: { name: string; file: Blob }): Input {
  const [was, is] = [before, after].map(({ name, file }) => ({ name, file }));
  return { kind: "pair", name: `${before.name} → ${after.name}`, files: [was!, is!] };
}

async function showReport(text: string, mine: number): Promise<void> {
  try {
    const parsed = JSON.parse(text.split("\n", 1)[0]!.startsWith("{") && text.trim().includes("\n{") ? text.split("\n", 1)[0]! : text) as Report & { program?: { text: string; tpu: string | null } };
    if (parsed.program) {
      // A report that holds its program is made again.
      const input: Input = { kind: "program", name: parsed.input ?? "report", file: new Blob([parsed.program.text]), plans: [] };
      return showProgram(input, parsed.program.tpu ? { machine: `tpu:${parsed.program.tpu}` } : {}, mine);
    }
    if (!Array.isArray(parsed.memory_spaces)) throw new Error("This JSON isn't a report of tilewise: it has no memory_spaces.");
    box.value = "";
    status.textContent = "A report without its program has no timeline.";
    const { programView } = await views.program();
    if (mine === opening) fill(view, programView(audit(parsed, null, null), { pictures }));
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

/// What of several files was not shown.
let left = "";

async function openEntries(entries: Entry[]): Promise<void> {
  if (!entries.length) return;
  fill(files);
  status.textContent = entries.length > 1 ? `Looking through ${entries.length} files …` : "";
  try {
    const { inputs, left: others } = await ofFiles(entries);
    const names = inputs.map((input) => input.name);
    left = entries.length > 1 ? `Took ${names.join(", ") || "nothing"}.${others.length ? ` Left: ${others.join(", ")}.` : ""}` : "";
    const first = inputs.find((input) => input.kind !== "unknown" && input.kind !== "assignment") ?? inputs[0];
    if (!first) return void (status.textContent = left);
    const shown = inputs.filter((input) => input.kind !== "unknown" && input.kind !== "assignment");
    const programs = shown.filter((input) => input.kind === "program");
    const [before, after] = programs;
    const choices = [...shown];
    if (before && after && programs.length === 2) choices.push(pair(before, after));
    const name = (input: Input) => (input.kind === "pair" ? "Compare" : input.name);
    if (shown.length > 1) fill(files, tabs("Files", choices.map((input, at) => [`${at}`, name(input)] as const), `${shown.indexOf(first)}`, (at) => void openInput(choices[Number(at)]!)));
    await openInput(first);
    left = "";
  } catch (error) {
    fail(error);
  }
}

/// Words without a bracket: no shape, and nothing else that is known.
const PROSE = /^[^[\]{}=]*\s[^[\]{}=]*$/;

async function openText(text: string, push: Push = true): Promise<void> {
  if (!text.trim()) return show({ view: "home" }, push);
  fill(files);
  const mine = ++opening;
  try {
    const input = await ofText(text);
    if (mine !== opening) return;
    if (input.kind === "unknown" && PROSE.test(text.trim())) {
      return fail(new Error("Paste the text that begins with RESOURCE_EXHAUSTED, as much of it as you have; or drop the log, the compiled program (HLO text), or a shape such as f32[8,128]."));
    }
    // What is being typed is a shape until it is something else.
    if (input.kind === "unknown" && text.trim().split("\n").length <= 2) return await show({ view: "shape", text: text.trim() }, push);
    await openInput(input.kind === "program" ? { ...input, name: "pasted text" } : input, undefined, push);
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

/// The input is as tall as its text, up to a few lines.
function grow(): void {
  const lines = Math.min(box.value.split("\n").length, 6);
  box.style.height = `${20 + 22 * lines}px`;
}

box.addEventListener("input", () => {
  grow();
  void openText(box.value, "typed");
});
file.addEventListener("change", () => void openEntries([...(file.files ?? [])].map((file) => ({ path: file.name, file }))));
folder.addEventListener("change", () => void openEntries([...(folder.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }))));
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dragging");
});
addEventListener("dragleave", (event) => event.relatedTarget ?? document.body.classList.remove("dragging"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  if (event.dataTransfer) void dropped(event.dataTransfer).then(openEntries, fail);
});
addEventListener("paste", (event) => {
  if (event.target === box || (event.target as Element).closest?.("input, textarea")) return;
  const text = event.clipboardData?.getData("text");
  const files = [...(event.clipboardData?.files ?? [])];
  if (files.length) void openEntries(files.map((file) => ({ path: file.name, file })));
  else if (text) {
    box.value = text.length < LARGE ? text : "";
    void openText(text);
  }
});
theme();
addEventListener("popstate", () => {
  fill(files);
  void decode(location.hash).then((next) => show(next, false));
});
void decode(location.hash).then((next) => show(next, false));
