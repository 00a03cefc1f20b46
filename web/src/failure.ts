// What could not be answered, and why.

import { CoreError } from "./core";
import { el } from "./dom";

/// The text with a caret under what is wrong.
export function failure(error: unknown, text = ""): HTMLElement {
  const core = error instanceof CoreError ? error : null;
  const [from, to] = core?.span ?? [0, 0];
  const start = text.lastIndexOf("\n", from - 1) + 1;
  const line = text.slice(start).split("\n", 1)[0] ?? "";
  return el(
    "div",
    { class: "failure", role: "alert" },
    core?.span && text && el("pre", { tabindex: "0" }, line, "\n", " ".repeat(from - start), el("span", { class: "caret" }, "^".repeat(Math.max(1, Math.min(to, start + line.length) - from)))),
    el("p", {}, error instanceof Error ? error.message : String(error)),
    core?.help && el("p", { class: "muted" }, core.help),
  );
}
