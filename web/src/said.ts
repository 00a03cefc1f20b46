// The core's answers: sentences, and code to copy.

import { copy, el } from "./dom";
import type { Remark } from "./program/data";

/// A layout's picture, as SVG, or null.
export type Pictures = (shape: string) => Promise<string | null>;

/// A text whose `code` is between backticks.
export function prose(text: string): (HTMLElement | string)[] {
  return text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

/// The change, and why or how: a sentence before its first colon outside of code, and behind it.
export function clauses(sentence: string): [string, string] {
  const parts = sentence.split("`");
  for (let at = 0, start = 0; at < parts.length; start += parts[at]!.length + 1, at++) {
    const colon = at % 2 ? -1 : parts[at]!.indexOf(": ");
    if (colon >= 0) return [sentence.slice(0, start + colon), sentence.slice(start + colon + 2)];
  }
  return [sentence, ""];
}

/// A piece of advice: what to do, and behind it, less loud, why.
export function advised(sentence: string): HTMLElement {
  const [what, why] = clauses(sentence);
  return el("p", {}, prose(why ? `${what}: ` : `${what}.`), why && el("span", { class: "muted" }, prose(`${why}.`)));
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
