// The page: one input for everything, what it is said to be, and its view. State lives here, and in the address.

import "./style.css";
import type { Assignment } from "./assignment";
import { CoreError, drawn, json, stop } from "./core";
import { bytes, copy, el, fill, grouped, isDark, theme } from "./dom";
import { failure } from "./failure";
import { openedTogether } from "./files";
import type { Example } from "./gallery";
import { home, howToGetAProgram } from "./home";
import { dropped, inOrder, ofFiles, ofText, PROSE, type Entry, type Input } from "./input";
import { keep, kept, nextName } from "./kept";
import type { Kernel } from "./kernel";
import { messageView, type Explained } from "./message/view";
import { keepOffline } from "./offline";
import type { ComparisonPage } from "./program/compare";
import type { Together } from "./together";
import type { Report } from "./program/data";
import { decode, encode, type Look, type State } from "./state";
import { UNLOADED } from "./unloaded";

let state: State = { view: "home" };
/// Counts what is being opened: what comes late of something older is dropped.
let opening = 0;
/// The last request: it can be tried again.
let asked: () => unknown = () => {};

const box = el("textarea", {
  class: "input",
  rows: 1,
  spellcheck: "false",
  autocapitalize: "off",
  placeholder: "Paste the message that begins with RESOURCE_EXHAUSTED, HLO text or a shape — or drop a file, a log or a dump folder anywhere",
  "aria-label": "A shape, an out-of-memory message or HLO text",
});
const status = el("p", { class: "status", role: "status" });
/// The error in the text that is being typed, while the view before it stays.
const trouble = el("div", {});
const view = el("main", { id: "view" });
const files = openedTogether((input) => void openInput(input));
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
  files.element,
  trouble,
  view,
);

/// Shows these in place of what was shown.
function present(...children: Parameters<typeof fill>[1][]): void {
  fill(trouble);
  view.classList.remove("stale");
  fill(view, ...children);
}

/// Whether a state gets an entry of its own in the history: what is typed takes the place of what was typed before.
type Push = boolean | "typed";

/// Shows a state, and remembers it in the address; an input that is too large for that, in this browser.
async function remember(next: State, push: Push = true, input?: Input): Promise<void> {
  state = next;
  let encoded = await encode(next).catch(() => null);
  if (state !== next) return;
  if (encoded === null && input) {
    const id = nextName();
    state = { ...next, kept: id } as State;
    encoded = await encode(state);
    void keep(id, input).catch(() => (link.title = "Too large for a link, and this browser doesn’t keep it"));
  }
  link.disabled = encoded === null || "kept" in state;
  link.title = link.disabled ? "Too large for a link; this browser keeps it for Back and Reload" : "";
  const hash = encoded ? `#${encoded}` : location.pathname + location.search;
  if (encoded === null || location.hash === (encoded && hash)) return;
  const isTyped = (history.state as { typed?: boolean } | null)?.typed ?? false;
  history[push === true || (push === "typed" && !isTyped) ? "pushState" : "replaceState"]({ typed: push === "typed", ...files.entry() }, "", hash);
}

/// The address follows what is looked at so long after, in milliseconds.
const SETTLED = 400;
let settling = 0;

/// Remembers how a program is looked at.
function looked(look: Look): void {
  clearTimeout(settling);
  const mine = opening;
  settling = window.setTimeout(() => mine === opening && void remember({ ...state, ...look } as State, false), SETTLED);
}

async function copyLink(): Promise<void> {
  const encoded = await encode(state);
  if (encoded !== null) await copy(link, `${location.href.split("#")[0]}#${encoded}`);
}

/// The views of programs and shapes are loaded with the first of them, as the core is.
const unloaded = () => {
  throw new CoreError(UNLOADED);
};
const views = {
  program: () => import("./program/open").catch(unloaded),
  compare: () => import("./program/compare").catch(unloaded),
  embedded: () => import("./embedded").catch(unloaded),
  assignment: () => import("./assignment").catch(unloaded),
  kernel: () => import("./kernel").catch(unloaded),
  together: () => import("./together").catch(unloaded),
  shape: () => import("./shape/view").catch(unloaded),
};

const LARGE = 200_000;

function goHome(): void {
  files.open([], 0);
  box.value = "";
  grow();
  status.textContent = "";
  document.title = "tilewise";
  const open = async (example: Example) => {
    if (example.text) return show({ view: "shape", text: example.text });
    const file = await (await fetch(example.url!)).blob();
    await openInput(example.name ? { kind: "program", name: example.name, file, plans: [] } : { kind: "message", name: example.title, file });
  };
  present(home(() => file.click(), (example) => void open(example).catch(fail)));
}

const openShape = (shape: string) => void show({ view: "shape", text: shape });

function fail(error: unknown, text = ""): void {
  if (error instanceof CoreError && error.kind === "stopped") return;
  status.textContent = "";
  const again = asked;
  const isOfLoad = error instanceof CoreError && error.kind === "load";
  present(el("h1", {}, "This can’t be shown"), failure(error, text, openShape), isOfLoad ? el("button", { type: "button", onclick: () => void again() }, "Try again") : howToGetAProgram("How to get a program that can be"));
}

/// Says what is wrong with what is typed; a shape or a program that is shown stays.
function complain(error: unknown, text = ""): void {
  if (!view.querySelector("article")) return fail(error, text);
  status.textContent = "";
  fill(trouble, failure(error, text, openShape));
  view.classList.add("stale");
}

/// Shows what an address or a click asks for.
async function show(next: State, push: Push = true): Promise<void> {
  const mine = ++opening;
  asked = () => show(next, false);
  await remember(next, push);
  if ("kept" in next && next.kept !== undefined) {
    const input = await kept<Input>(next.kept).catch(() => undefined);
    if (mine !== opening) return;
    if (input) return openInput(input, next);
    return fail(new Error("This address stands for an input that was too large for a link: it lay in the browser where it was opened. Open the file again."));
  }
  switch (next.view) {
    case "home":
      return goHome();
    case "shape":
      if (push !== "typed") box.value = next.text;
      grow();
      return showShape(next.text, next, mine, push === "typed");
    case "message":
      box.value = next.text ?? "";
      grow();
      return next.text === undefined ? goHome() : showMessage({ kind: "message", name: "message", file: new Blob([next.text]) }, next.text, mine);
    case "kernel":
      box.value = next.text ?? "";
      grow();
      return next.text === undefined ? goHome() : showKernels({ name: next.name ?? "kernel", text: next.text }, mine);
    case "damaged":
      return fail(new Error("This link is damaged. Ask for it again, or open the file itself."));
    case "pair":
    case "set":
      return goHome();
    case "program":
      if (next.text === undefined) return goHome();
      return showProgram({ kind: "program", name: next.name, file: new Blob([next.text]), plans: [] }, next, mine);
    case "report":
      return next.text === undefined ? goHome() : showReport(next.text, mine);
  }
}

/// Shows an input; `entry` is that of the history which it is of already.
async function openInput(input: Input, entry?: { kept?: string } & Look, push: Push = true): Promise<void> {
  const mine = ++opening;
  asked = () => openInput(input, state as Look);
  const text = async (file: Blob) => (file.size < LARGE ? await readable(file) : undefined);
  const enter = (next: State) => (entry ? remember({ ...next, ...(entry.kept && { kept: entry.kept }) } as State, false) : remember(next, push, input));
  switch (input.kind) {
    case "shape":
      return show({ view: "shape", text: input.text.trim() }, push);
    case "message": {
      const message = await text(input.file);
      await enter({ view: "message", name: input.name, ...(message !== undefined && { text: message }) });
      return showMessage(input, message, mine);
    }
    case "kernel":
      await enter({ view: "kernel", name: input.name, ...(input.text.length < LARGE && { text: input.text }) });
      return showKernels(input, mine, push === "typed");
    case "report":
      await enter({ view: "report", name: input.name, ...(input.text.length < LARGE && { text: input.text }) });
      return showReport(input.text, mine);
    case "program": {
      const program = input.plans.length ? undefined : await text(input.file);
      const { machine, at, shown } = entry ?? {};
      const look: Look = { ...(machine && { machine }), ...(at !== undefined && { at }), ...(shown && { shown }) };
      await enter({ view: "program", name: input.name, ...(program !== undefined && { text: program }), ...look });
      return showProgram(input, look, mine);
    }
    case "pair":
      await enter({ view: "pair", name: input.name });
      return showPair(input, mine);
    case "set":
      await enter({ view: "set", name: input.name });
      return showTogether(input, mine);
    case "assignment":
      return showAssignment(input, mine);
    default:
      return fail(new Error(`${input.name}: nothing that is known here${input.what === "other" ? "" : ` (${input.what})`}. Known are out-of-memory messages and logs, HLO text and protos, dumps, reports, kernels and shapes.`));
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

async function showShape(text: string, options: { other?: string; picture?: string }, mine: number, isTyped = false): Promise<void> {
  try {
    const { shapeView } = await views.shape();
    const shown = await shapeView(text, {
      other: options.other,
      picture: options.picture,
      changed: ({ other, picture }) => void remember({ view: "shape", text, ...(other && { other }), ...(picture && picture !== "both" && { picture }) }, false),
      open: openShape,
    });
    if (mine !== opening) return;
    status.textContent = "";
    document.title = `${text} – tilewise`;
    present(shown);
  } catch (error) {
    if (mine === opening) (isTyped ? complain : fail)(error, text);
  }
}

/// A button that gives up what is being worked at.
const stopper = () => el("button", { type: "button", onclick: () => (stop(), ++opening, goHome()) }, "Stop");

/// The message that a text or a log holds; the text is shown with it where it is short.
async function showMessage({ name, file }: Input & { kind: "message" }, text: string | undefined, mine: number): Promise<void> {
  if (text === undefined) fill(status, `Looking for the message in ${name}, ${bytes(file.size)} … `, stopper());
  try {
    const explained = await json<Explained>("explainFile", file);
    if (mine !== opening) return;
    status.textContent = text === undefined ? `Found in ${name}, ${bytes(file.size)}.` : "";
    document.title = "Out of memory – tilewise";
    present(messageView(explained, text ?? "", (shape) => drawn(shape)));
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

/// Which of what was opened is a program that is being read; 0 for none.
let reading = 0;

async function showProgram(input: Input & { kind: "program" }, look: Look, mine: number): Promise<void> {
  // A program that is being read is given up for the next.
  if (reading) stop();
  reading = mine;
  fill(status, `Reading ${input.name}, ${bytes(input.file.size)} … `, stopper());
  present();
  if (!isCut()) box.value = "";
  grow();
  const again = (next: Look) => void remember({ ...state, ...next } as State).then(() => showProgram(input, next, ++opening));
  const { machine, at, shown } = look;
  try {
    const { openProgram } = await views.program();
    const kept: Look = { ...(machine && { machine }), ...(at !== undefined && { at }), ...(shown && { shown }) };
    const opened = await openProgram(input, { look: kept, looked, again, isWanted: () => mine === opening });
    if (!opened || mine !== opening) return;
    status.textContent = [left, opened.plan].filter(Boolean).join(" ");
    present(opened.element);
  } catch (error) {
    if (mine === opening) fail(error);
  } finally {
    if (reading === mine) reading = 0;
  }
}

async function showPair({ files: [before, after] }: Input & { kind: "pair" }, mine: number): Promise<void> {
  status.textContent = `Reading ${before.name} and ${after.name} …`;
  present();
  try {
    const content = async ({ file }: { file: Blob }) => new Uint8Array(await file.arrayBuffer());
    const comparison = await json<ComparisonPage>("compareFiles", before.name, await content(before), after.name, await content(after));
    const { compareView } = await views.compare();
    if (mine !== opening) return;
    status.textContent = "";
    document.title = `${before.name} → ${after.name} – tilewise`;
    const swap = el("button", { type: "button", onclick: () => void openInput(pair(after, before)) }, "Swap");
    present(compareView(comparison, { actions: [swap], pictures: (shape) => drawn(shape) }));
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

async function showTogether({ name, files: programs }: Input & { kind: "set" }, mine: number): Promise<void> {
  status.textContent = `Reading ${programs.length} programs …`;
  present();
  try {
    const contents = await Promise.all(programs.map(async ({ name, file }) => ({ name, bytes: new Uint8Array(await file.arrayBuffer()) })));
    const held = await json<Together>("together", contents, isDark() ? "dark" : "light");
    const { togetherView } = await views.together();
    if (mine !== opening) return;
    status.textContent = "";
    document.title = `${name} – tilewise`;
    present(togetherView(name, held));
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

/// Two programs to be compared, before and after.
function pair(before: { name: string; file: Blob }, after: { name: string; file: Blob }): Input {
  const [was, is] = [before, after].map(({ name, file }) => ({ name, file }));
  return { kind: "pair", name: `${before.name} → ${after.name}`, files: [was!, is!] };
}

async function showAssignment({ name, file }: Input & { kind: "assignment" }, mine: number): Promise<void> {
  try {
    const plan = await json<Assignment>("assignment", name, new Uint8Array(await file.arrayBuffer()));
    const { assignmentView } = await views.assignment();
    if (mine !== opening) return;
    status.textContent = left;
    document.title = `${name} – tilewise`;
    present(assignmentView(name, plan));
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

async function showKernels({ name, text }: { name: string; text: string }, mine: number, isTyped = false): Promise<void> {
  try {
    const kernels = await json<Kernel[]>("kernels", text, isDark() ? "dark" : "light");
    const { kernelView } = await views.kernel();
    if (mine !== opening) return;
    status.textContent = "";
    document.title = `${name} – tilewise`;
    present(kernelView(name, kernels));
  } catch (error) {
    if (mine === opening) (isTyped ? complain : fail)(error, text);
  }
}

async function showReport(text: string, mine: number): Promise<void> {
  try {
    // Of several reports, a line each, the first.
    const first = text.split("\n", 1)[0]!;
    const parsed = JSON.parse(first.startsWith("{") && text.trim().includes("\n{") ? first : text) as Report & { program?: { text: string; tpu: string | null } };
    if (parsed.program) {
      // A report that holds its program is made again.
      const input: Input = { kind: "program", name: parsed.input ?? "report", file: new Blob([parsed.program.text]), plans: [] };
      return showProgram(input, parsed.program.tpu ? { machine: `tpu:${parsed.program.tpu}` } : {}, mine);
    }
    const { embeddedView, isComparison, isEmbedded, reportView } = await views.embedded();
    const isBare = !isEmbedded(parsed) && !isComparison(parsed);
    if (isBare && !Array.isArray(parsed.memory_spaces)) throw new Error("This JSON isn't a report of tilewise: it has no memory_spaces.");
    const { compareView } = await views.compare();
    if (mine !== opening) return;
    box.value = "";
    status.textContent = isBare ? "A report without its program has no timeline." : "";
    present(isEmbedded(parsed) ? embeddedView(parsed) : isComparison(parsed) ? compareView(parsed, { pictures: (shape) => drawn(shape) }) : reportView(parsed, (shape) => drawn(shape)));
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

/// Shows what the address stands for, unless something is opened meanwhile.
async function follow(entry: unknown): Promise<void> {
  const mine = ++opening;
  const [group, next] = await Promise.all([files.recall(entry), decode(location.hash)]);
  if (mine !== opening) return;
  files.restore(group);
  await show(next, false);
}

/// The files that weren't shown, of several.
let left = "";

async function openEntries(entries: Entry[]): Promise<void> {
  if (!entries.length) return;
  const mine = ++opening;
  asked = () => openEntries(entries);
  status.textContent = entries.length > 1 ? `Looking through ${entries.length} files …` : "";
  const placeOf = ({ name }: { name: string }) => entries.findIndex(({ path }) => path === name);
  try {
    const { inputs, left: others } = await ofFiles(entries);
    if (mine !== opening) return;
    const names = inputs.map((input) => input.name);
    left = entries.length > 1 ? `Took ${names.join(", ") || "nothing"}.${others.length ? ` Left: ${others.join(", ")}.` : ""}` : "";
    // A plan is shown by itself only where nothing else is.
    const known = inputs.filter((input) => input.kind !== "unknown");
    const shown: Input[] = known.some((input) => input.kind !== "assignment") ? known.filter((input) => input.kind !== "assignment") : known;
    const programs = shown.filter((input) => input.kind === "program");
    const [one, other] = programs;
    if (one && other && programs.length === 2) {
      const given = [one, other].sort((a, b) => placeOf(a) - placeOf(b)) as [typeof one, typeof other];
      const ordered = inOrder(given);
      const places = given.map((one) => shown.indexOf(one)).sort((a, b) => a - b);
      ordered.forEach((one, at) => (shown[places[at]!] = one));
      shown.push(pair(...ordered));
    }
    if (programs.length > 1) shown.push({ kind: "set", name: `${programs.length} programs together`, files: programs.map(({ name, file }) => ({ name, file })) });
    const first = shown[0] ?? inputs[0];
    if (!first) return fail(new Error(left));
    files.open(shown, 0);
    await openInput(first);
    left = "";
  } catch (error) {
    if (mine === opening) fail(error);
  }
}

const A_WORD = /^[a-z]+$/i;
const WANTED = "Paste the text that begins with RESOURCE_EXHAUSTED, as much of it as you have; or drop the log, the compiled program (HLO text), or a shape such as f32[8,128].";

async function openText(text: string, push: Push = true): Promise<void> {
  if (!/\S/.test(text)) return show({ view: "home" }, push);
  files.open([], 0);
  const mine = ++opening;
  asked = () => openText(text, push);
  try {
    const input = await ofText(text);
    if (mine !== opening) return;
    const short = text.slice(0, LARGE).trim();
    // Words, but for those that a shape begins with.
    if (input.kind === "unknown" && (PROSE.test(short) || (A_WORD.test(short) && short.length > 4))) return (push === "typed" ? complain : fail)(new Error(WANTED));
    // A text that is being typed is a shape until it is something else.
    if (input.kind === "unknown" && short.split("\n").length <= 2) return await show({ view: "shape", text: short }, push);
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

/// Of a longer text that is pasted, only the beginning is in the box: laying it out would take seconds.
const BOX = 20_000;
const BEGINNING = 300;
const isCut = () => "cut" in box.dataset;

function paste(text: string): void {
  const isLong = text.length > BOX;
  if (isLong) box.dataset["cut"] = "";
  else delete box.dataset["cut"];
  box.value = isLong ? `${text.slice(0, BEGINNING)} … ${grouped(text.length - BEGINNING)} more characters` : text;
  grow();
  void openText(text);
}

box.addEventListener("input", () => {
  delete box.dataset["cut"];
  grow();
  void openText(box.value, "typed");
});
// A text that is cut can't be edited: the next one takes its place.
box.addEventListener("focus", () => isCut() && box.select());
file.addEventListener("change", () => void openEntries([...(file.files ?? [])].map((file) => ({ path: file.name, file }))));
folder.addEventListener("change", () => void openEntries([...(folder.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }))));
// A file may be opened twice in a row.
for (const input of [file, folder]) input.addEventListener("click", () => (input.value = ""));
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
  const isBox = event.target === box;
  if (!isBox && (event.target as Element).closest?.("input, textarea")) return;
  const pasted = [...(event.clipboardData?.files ?? [])];
  if (pasted.length) {
    event.preventDefault();
    return void openEntries(pasted.map((file) => ({ path: file.name, file })));
  }
  const text = event.clipboardData?.getData("text") ?? "";
  // The box takes what is short by itself.
  if (!text || (isBox && text.length <= BOX && !isCut())) return;
  event.preventDefault();
  paste(text);
});
theme();
addEventListener("popstate", (event) => void follow(event.state));
void follow(history.state);
keepOffline();
