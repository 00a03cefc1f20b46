// The program's text at an instruction: names lead to where they are defined, and uses are listed.

import { el, fill, grouped } from "../dom";
import type { Line, Texts } from "./text";

/// Lines before and behind the one that is asked for.
const REACH = 14;
/// Uses that are listed.
const USES = 20;
/// A line that is longer is cut: constants may be megabytes.
const LONGEST = 4000;

const NAME = /%?([A-Za-z_][\w.-]*)/g;

export interface Pane {
  element: HTMLElement;
  /// Shows where an instruction is defined.
  show(instruction: string): Promise<void>;
}

/// `chosen` hears of the instruction that is gone to.
export function pane(texts: Texts, chosen: (instruction: string) => void): Pane {
  const list = el("pre", { class: "lines", tabindex: "0", "aria-label": "Lines of the program" });
  const uses = el("p", { class: "muted" });
  const where = el("span", { class: "muted", "aria-live": "polite" });
  const search = el("input", { type: "search", class: "mono", placeholder: "Find in the text", "aria-label": "Find in the program's text", spellcheck: "false" });
  let at = 0;

  async function go(to: number, name: string | null): Promise<void> {
    at = to;
    const { lines, count } = await texts.ask("around", to, REACH);
    const words = lines.flatMap(({ text }) => [...text.slice(0, LONGEST).matchAll(NAME)].map((match) => match[1]!));
    const known = new Set(await texts.ask("known", [...new Set(words)]));
    where.textContent = `line ${grouped(to + 1)} of ${grouped(count)}`;
    fill(list, lines.map((line) => row(line, known, line.at === to)));
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    const used = name ? await texts.ask("uses", name, USES) : [];
    fill(uses, name && (used.length ? "Used in " : "Used nowhere."), used.map((line) => [el("button", { type: "button", class: "link mono", onclick: () => void jump(line) }, nameOf(line)), " "]).flat());
  }
  const nameOf = ({ at, text }: Line) => /%?([\w.-]+) = /.exec(text)?.[1] ?? `line ${at + 1}`;
  const jump = (line: Line) => {
    chosen(nameOf(line));
    return go(line.at, nameOf(line));
  };

  function row({ at, text }: Line, known: Set<string>, isHere: boolean): HTMLElement {
    const parts: (Node | string)[] = [];
    const shown = text.slice(0, LONGEST);
    let end = 0;
    for (const match of shown.matchAll(NAME)) {
      if (!known.has(match[1]!)) continue;
      parts.push(shown.slice(end, match.index), el("button", { type: "button", class: "link", tabindex: "-1", onclick: () => (chosen(match[1]!), void show(match[1]!)) }, match[0]));
      end = match.index + match[0].length;
    }
    parts.push(shown.slice(end), text.length > LONGEST ? ` … ${grouped(text.length - LONGEST)} more characters` : "");
    return el("div", { "aria-current": isHere ? "true" : null, "data-line": at + 1 }, parts);
  }

  async function show(instruction: string): Promise<void> {
    const found = await texts.ask("definition", instruction);
    if (found !== null) await go(found, instruction);
  }
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !search.value) return;
    event.preventDefault();
    void texts.ask("find", search.value, at + 1).then((found) => (found === null ? void (where.textContent = "not found") : go(found, null)));
  });
  return { element: el("div", { class: "pane" }, el("div", { class: "row filter" }, search, where), list, uses), show };
}
