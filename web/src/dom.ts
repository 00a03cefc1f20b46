// Elements, and numbers as people read them.

type Child = Node | string | null | undefined | false;
type Properties = Record<string, unknown>;

/// An element: properties that start with "on" are listeners, true and false set attributes or leave them out.
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Properties = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: (Child | Child[])[]): void {
  parent.append(...children.flat().filter((child): child is Node | string => !!child));
}

/// Puts these in place of what is there.
export function fill(parent: Element, ...children: (Child | Child[])[]): void {
  parent.replaceChildren();
  append(parent, children);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// 1.50 GiB, as the command line writes it.
export function bytes(count: number): string {
  let [value, unit] = [count, 0];
  // A value that would print as 1024.00 belongs to the next unit.
  while (value >= 1023.995 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return unit === 0 ? `${count} B` : `${hundredths(value)} ${UNITS[unit]}`;
}

/// Two decimals. Of two that are equally near, which only whole eighths have, Rust prints the even one, `toFixed` the larger.
function hundredths(value: number): string {
  const below = Math.floor(value * 100);
  return (value * 8) % 2 === 1 && below % 2 === 0 ? (below / 100).toFixed(2) : value.toFixed(2);
}

export function percent(part: number, whole: number): string {
  const share = whole > 0 ? (100 * part) / whole : 0;
  if (share > 0 && share < 0.1) return "<0.1%";
  return `${share > 0 && share < 1 ? share.toFixed(1) : Math.round(share)}%`;
}

export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}

/// The end of a path with its line: what tells files apart. Names of arguments, `params['lstm/linear']`, are no paths.
export function shortPath(label: string): string {
  const [path = "", ...rest] = label.split(" ");
  return path.includes("'") ? label : [path.split("/").pop() || path, ...rest].join(" ");
}

/// Of a path from the root, the file: the rest says only whose machine it is.
export const fromRoot = (path: string) => (path.startsWith("/") ? shortPath(path) : path);

export interface Source {
  file: string;
  line: number;
  function: string | null;
  library?: Source | null;
}

/// A line of the user's program, and that of the model it calls.
export function sourceLabel(source: Source | null): string | null {
  if (!source) return null;
  const { file, line, function: name, library } = source;
  const called = library ? ` › ${library.file.split("/").pop()}:${library.line}` : "";
  return `${file}:${line}${name ? ` ${name}` : ""}${called}`;
}

export type Cell = HTMLElement | string | null;

/// A table that scrolls by itself, with a name of its own; of `numbers` the columns are numbers.
export function table(label: string, names: readonly string[], rows: Cell[][], numbers: readonly string[] = []): HTMLElement {
  const kind = (at: number) => (numbers.includes(names[at]!) ? "number" : "");
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, names.map((name, at) => el("th", { scope: "col", class: kind(at) }, name)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) => el("td", { class: kind(at) }, cell))))),
    ),
  );
}

/// Writes to the clipboard, and says so on the button for a moment.
export async function copy(button: HTMLElement, content: string | Blob): Promise<void> {
  const before = button.textContent;
  try {
    if (typeof content === "string") await navigator.clipboard.writeText(content);
    else await navigator.clipboard.write([new ClipboardItem({ [content.type]: content })]);
    button.textContent = "Copied";
  } catch {
    button.textContent = "The browser refused";
  }
  setTimeout(() => (button.textContent = before), 1500);
}

export function download(name: string, content: Blob): void {
  const link = el("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/// An SVG's pixels, at twice its size.
export async function toPng(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const canvas = el("canvas", { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (!blob) throw new Error("the picture is too large for an image");
    return blob;
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

export function isDark(): boolean {
  if (matchMedia("print").matches) return false;
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// Paper is light, and the system may turn.
for (const query of ["print", "(prefers-color-scheme: dark)"]) matchMedia(query).addEventListener("change", () => dispatchEvent(new Event("theme")));

const THEME = "tilewise-theme";

/// Turns the page light or dark, as it was left, or the other way round.
export function theme(turn = false): void {
  try {
    const chosen = turn ? (isDark() ? "light" : "dark") : localStorage.getItem(THEME);
    if (turn) localStorage.setItem(THEME, chosen!);
    if (chosen) document.documentElement.dataset["theme"] = chosen;
  } catch {
    // A browser that keeps nothing.
    if (turn) document.documentElement.dataset["theme"] = isDark() ? "light" : "dark";
  }
  if (turn) dispatchEvent(new Event("theme"));
}

/// Functions that draw an element again in the colours of the page; no element is kept alive for them.
const drawers = new WeakMap<Element, () => unknown>();
const drawn = new Set<WeakRef<Element>>();

/// Draws again whenever the page turns light or dark, as long as the element is in it.
export function redrawn(element: Element, draw: () => unknown): void {
  for (const known of drawn) if (!known.deref()) drawn.delete(known);
  drawers.set(element, draw);
  drawn.add(new WeakRef(element));
}
addEventListener("theme", () => {
  for (const known of drawn) {
    const element = known.deref();
    if (element?.isConnected) drawers.get(element)?.();
  }
});

/// Scrolls until it is seen, at once where motion is to be little.
export function intoView(element: Element): void {
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block: "nearest", behavior: isStill ? "auto" : "smooth" });
}

/// Buttons of which one is on.
export function tabs(
  label: string,
  names: readonly (readonly [id: string, title: string])[],
  chosen: string,
  choose: (id: string) => void,
): HTMLElement {
  const buttons = names.map(([id, title]) =>
    el("button", { type: "button", "aria-pressed": String(id === chosen), "data-id": id, onclick: () => select(id) }, title),
  );
  function select(id: string) {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset["id"] === id));
    choose(id);
  }
  return el("div", { class: "tabs", role: "group", "aria-label": label }, buttons);
}
