// Failures and their reasons.

import { CoreError } from "./core";
import { el } from "./dom";
import { prose } from "./said";

/// Of a line, what is shown before what is wrong and behind it: a file may be one line.
const AROUND = 120;
/// Longer words are cut.
const LONGEST = 2000;

/// A shape that the core offers in place of what is wrong.
const SHAPE = /^\(?[a-z]\w*\[/;

/// The text with a caret under what is wrong; shapes that are offered instead are buttons.
export function failure(error: unknown, text = "", open?: (shape: string) => void): HTMLElement {
  const core = error instanceof CoreError ? error : null;
  const words = error instanceof Error ? error.message : String(error);
  return el(
    "div",
    { class: "failure", role: "alert" },
    core?.span && text && excerpt(text, core.span),
    el("p", {}, (core ? sentence : prose)(words.length > LONGEST ? `${words.slice(0, LONGEST)} …` : words)),
    core?.help && el("p", { class: "muted" }, sentence(core.help).map((part) => (open && part instanceof HTMLElement && SHAPE.test(part.textContent!) ? offer(part, open) : part))),
  );
}

const offer = (shape: HTMLElement, open: (shape: string) => void) => el("button", { type: "button", onclick: () => open(shape.textContent!) }, shape);

/// The core's errors are parts of a sentence.
const sentence = (words: string) => prose(`${words[0]?.toUpperCase() ?? ""}${words.slice(1)}${/[.…:`^]$/.test(words) ? "" : "."}`);

function excerpt(text: string, [from, to]: [number, number]): HTMLElement {
  const start = Math.max(text.lastIndexOf("\n", from - 1) + 1, from - AROUND);
  const line = text.slice(start, from + AROUND).split("\n", 1)[0] ?? "";
  const marked = Math.max(1, Math.min(to, start + line.length) - from);
  return el("pre", { tabindex: "0" }, line, "\n", " ".repeat(from - start), el("span", { class: "caret" }, "^".repeat(marked)));
}
