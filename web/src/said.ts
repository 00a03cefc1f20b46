// What the core says: its sentences, and code to copy.

import { copy, el } from "./dom";
import type { Remark } from "./program/data";

/// A layout's picture, as SVG; null where there is none.
export type Pictures = (shape: string) => Promise<string | null>;

/// A text whose `code` is between backticks.
export function prose(text: string): (HTMLElement | string)[] {
  return text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

/// A sentence, as loud as it is.
export function said({ words, tone }: Remark): HTMLElement {
  const classes = { faint: "muted", plain: "", strong: "", warning: "bad", bad: "bad" };
  return el(tone === "plain" || tone === "faint" ? "span" : "strong", { class: classes[tone] }, prose(words));
}

/// Code with a button to copy it.
export function code({ code, imports }: { code: string | null; imports: string | null }): HTMLElement | null {
  if (!code) return null;
  const text = imports ? `${imports}\n\n${code}` : code;
  const button = el("button", { type: "button", onclick: () => copy(button, text) }, "Copy");
  return el("div", { class: "code" }, el("pre", { tabindex: "0" }, text), button);
}
