// Programs that are loaded on one device at once, such as the buckets of a server: one bar, and the programs beneath.

import { el } from "./dom";

/// As the core's `together` says it.
export interface Together {
  headline: string;
  fits: boolean | null;
  svg: string;
  text: string;
}

export function togetherView(name: string, { headline, fits, svg, text }: Together): HTMLElement {
  const picture = el("div", { class: "picture" });
  picture.innerHTML = svg;
  // The first line is the headline.
  const rest = text.slice(text.indexOf("\n") + 1);
  return el(
    "article",
    { class: "together" },
    el("header", { class: "story" }, el("h1", {}, name), el("p", { class: fits === false ? "lead bad" : "lead" }, el("strong", {}, headline))),
    picture,
    el("pre", { class: "mono", tabindex: "0", "aria-label": "All of it" }, rest),
  );
}
