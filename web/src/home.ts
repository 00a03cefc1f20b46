// The page to begin with: where to put an input, what comes of one, and examples.

import plan from "../../crates/tilewise-draw/figures/plan.svg?url";
import { el } from "./dom";
import { GALLERY, SHOWN_FIRST, type Example } from "./gallery";

/// Where the documents are, where the page is a part of their site.
const DOCUMENTS = import.meta.env["VITE_DOCUMENTS"] as string | undefined;

/// How a compiled program is had, for those who have none yet.
const COMPILED = `open("program.hlo", "w").write(jax.jit(f).lower(*args).compile().as_text())  # JAX, at hand
XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text" python train.py         # any framework: drop DIR
pip install 'jax[tpu]'                                                       # compiles for a TPU without one`;

/// Shown to begin with, and where what was opened can't be read.
export const howToGetAProgram = (heading: string): HTMLElement => el("section", { "aria-label": "How to get a program" }, el("h2", {}, heading), el("pre", { class: "scroll", tabindex: "0" }, COMPILED));

/// `choose` asks for a file, `open` hears of an example.
export function home(choose: () => void, open: (example: Example) => void): HTMLElement[] {
  const card = (example: Example) => el("button", { type: "button", onclick: () => open(example) }, el("strong", { class: example.text ? "mono" : "" }, example.title), el("span", { class: "muted" }, example.about));
  const result = el(
    "button",
    { type: "button", class: "result", onclick: () => open(SHOWN_FIRST) },
    el("img", { src: plan, alt: "Memory of a graph network over its order, by line, and where each allocation lies", width: 980, height: 891 }),
    el("span", { class: "muted" }, "A graph network on a TPU v5e, compiled: 86 % of its peak is padding. Open it."),
  );
  return [
    el("h1", {}, "Why does my TPU program run out of memory?"),
    el("p", { class: "lead" }, "What it holds and why, which line owns it, and what to change first. And where the elements of a tiled array lie."),
    el("button", { type: "button", class: "drop", onclick: choose }, el("strong", {}, "Drop a log, a compiled program or a dump folder here, or choose files"), el("span", { class: "muted" }, "Or paste the message above. Nothing is uploaded.")),
    howToGetAProgram("Your error message is enough to begin; a compiled program tells more"),
    el("section", { "aria-label": "What comes of it" }, result),
    ...(DOCUMENTS ? [el("p", {}, el("a", { href: DOCUMENTS }, "Documents"), " · ", el("a", { href: `${DOCUMENTS}docs/install/` }, "Install the command line and the Python package"))] : []),
    ...Object.entries(GALLERY).map(([title, examples]) => el("section", {}, el("h2", {}, title), el("ul", { class: "gallery" }, examples.map((example) => el("li", {}, card(example)))))),
  ];
}
