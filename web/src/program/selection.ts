// The events in a part of a run, in the core's words.

import { el, fill } from "../dom";
import { said } from "../said";
import type { Remark } from "./data";

export interface Selection {
  element: HTMLElement;
  /// Says what happens between two moments, both of them included; nothing hides it.
  show(range: [number, number] | null): void;
}

export function selection(spans: ((first: number, last: number) => Promise<Remark[]>) | undefined, cleared: () => void): Selection {
  const element = el("p", { class: "selection", "aria-live": "polite", hidden: true });
  let wanted: [number, number] | null = null;
  let isAsking = false;

  /// One question at a time: while a part is dragged, most of them are out of date before they are answered.
  async function ask() {
    if (isAsking) return;
    isAsking = true;
    for (let asked = wanted; asked && spans; asked = wanted === asked ? null : wanted) {
      const remarks = await spans(...asked).catch(() => []);
      if (wanted) fill(element, remarks.flatMap((remark) => [said(remark), " "]), el("button", { type: "button", onclick: cleared }, "Clear"));
    }
    isAsking = false;
  }
  return {
    element,
    show(range) {
      wanted = range;
      element.hidden = range === null;
      if (range) void ask();
    },
  };
}
