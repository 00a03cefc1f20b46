// Programs that are loaded on one device at once, such as the buckets of a server: whether they fit, what frees memory,
// one bar, the programs, and the arrays that are held once.

import { bytes, el, grouped, table } from "./dom";
import { prose } from "./said";

/// As `docs/json.md` has them, of what is shown.
interface LoadedProgram {
  name: string;
  temporary_bytes: number;
  call_bytes: number;
  constant_bytes: number;
  code_bytes: number | null;
  freed_bytes: number;
  costs_pages: number | null;
}

interface ResidentArray {
  name: string;
  shape: string;
  bytes: number;
  padding_bytes: number;
  programs: string[];
  is_laid_out_otherwise: boolean;
}

interface Alternative {
  sentence: string;
  freed_bytes: number;
  is_bound: boolean;
  pages: number | null;
}

export interface Together {
  headline: string;
  svg: string;
  together: {
    fits: boolean | null;
    programs: LoadedProgram[];
    residents: ResidentArray[];
    pages: { fitting: number | null } | null;
    options: Alternative[];
  };
}

/// As many arrays as a screen holds.
const SHOWN = 12;

export function togetherView(name: string, { headline, svg, together }: Together): HTMLElement {
  const { fits, programs, residents, pages, options } = together;
  const picture = el("div", { class: "picture" });
  picture.innerHTML = svg;
  const gain = ({ freed_bytes: freed, is_bound: isBound, pages: fitting }: Alternative) => {
    const upTo = isBound ? "up to " : "";
    return fitting === null ? `${upTo}${bytes(freed)}` : `${upTo}${grouped(fitting - (pages?.fitting ?? 0))} more pages, ${grouped(fitting)}`;
  };
  const costs = ({ costs_pages: count, freed_bytes: freed }: LoadedProgram) => (count === null ? bytes(freed) : `${grouped(count)} ${count === 1 ? "page" : "pages"}`);
  const names = (of: string[]) => (of.length === programs.length ? "all" : of.join(", "));
  const more = residents.length - SHOWN;
  return el(
    "article",
    { class: "together" },
    el("header", { class: "story" }, el("h1", { "aria-live": "polite" }, el("span", { class: `judgement ${fits === null ? "doubt" : fits ? "good" : "bad"}` }, prose(headline)), " ", el("small", { class: "muted" }, name))),
    options.length > 0 && [el("h2", {}, "What makes room"), el("ul", {}, options.map((option) => el("li", {}, prose(option.sentence), ": ", el("strong", {}, gain(option)))))],
    picture,
    el("h2", {}, "The programs"),
    table(
      "Table of programs",
      ["temporaries", "calls", "constants", "code", "costs", "program"],
      programs.map((program) => [bytes(program.temporary_bytes), bytes(program.call_bytes), bytes(program.constant_bytes), program.code_bytes === null ? "–" : bytes(program.code_bytes), costs(program), program.name]),
      ["temporaries", "calls", "constants", "code", "costs"],
    ),
    el("h2", {}, "Arrays that are held once"),
    table(
      "Table of arrays that are held once",
      ["takes", "padding", "array", "argument", "programs"],
      residents.slice(0, SHOWN).map((array) => [bytes(array.bytes), array.padding_bytes ? bytes(array.padding_bytes) : "–", el("code", {}, array.shape), el("code", {}, array.name), `${names(array.programs)}${array.is_laid_out_otherwise ? "; others have it in another layout" : ""}`]),
      ["takes", "padding"],
    ),
    more > 0 && el("p", { class: "muted" }, `${grouped(more)} more`),
  );
}
