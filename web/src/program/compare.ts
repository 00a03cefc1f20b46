// Two programs, before and after a change: what each holds at its peak, by owner; both over their order, on one axis; and
// their copies.

import { bytes, el, grouped, redrawn, shortPath, sourceLabel } from "../dom";
import type { Audit } from "./data";
import { Profile, round, rounded } from "./profile";
import { aliveAt } from "./rows";

export interface Compared {
  name: string;
  audit: Audit;
}

/// Rows that are listed.
const SHOWN = 30;

export function compareView(before: Compared, after: Compared): HTMLElement {
  const [first, second] = [before.audit.report.at_most_bytes, after.audit.report.at_most_bytes];
  return el(
    "article",
    { class: "compared" },
    el("header", { class: "story" }, el("h1", {}, before.name, " → ", after.name), el("p", { class: "lead" }, el("strong", {}, `${bytes(first)} → ${bytes(second)}`), `, ${change(second - first)}`)),
    over([before, after]),
    el("section", { "aria-label": "The peak's change" }, el("h2", {}, "At each peak, by owner"), table(["before", "after", "change", "owner"], changes(peak(before.audit), peak(after.audit)))),
    copies(before.audit, after.audit),
  );
}

function change(by: number): string {
  return by === 0 ? "no change" : `${by > 0 ? "+" : "−"}${bytes(Math.abs(by))}`;
}

interface Amount {
  bytes: number;
  label: string;
}

/// What each owner holds at the peak; of two programs, lines move and names of operations stay.
function peak(audit: Audit): Map<string, Amount> {
  const owners = new Map<string, Amount>();
  for (const row of aliveAt(audit, audit.timeline, audit.timeline?.peak_moment ?? 0)) {
    const name = `${row.role}\n${row.path || row.owner}`;
    const known = owners.get(name);
    if (known) known.bytes += row.bytes;
    else owners.set(name, { bytes: row.bytes, label: row.path && row.path !== row.owner ? `${row.path} (${shortPath(row.owner)})` : row.owner });
  }
  return owners;
}

/// A row for each that changed, those that changed most first.
function changes(before: Map<string, Amount>, after: Map<string, Amount>): (string | HTMLElement)[][] {
  const rows = [...new Set([...before.keys(), ...after.keys()])].map((name) => {
    const [was, is] = [before.get(name), after.get(name)];
    return { was: was?.bytes ?? 0, is: is?.bytes ?? 0, label: (is ?? was)!.label };
  });
  const changed = rows.filter(({ was, is }) => was !== is).sort((a, b) => Math.abs(b.is - b.was) - Math.abs(a.is - a.was));
  const left = changed.length - SHOWN;
  const listed: (string | HTMLElement)[][] = changed.slice(0, SHOWN).map(({ was, is, label }) => [was ? bytes(was) : "–", is ? bytes(is) : "–", el("span", { class: is > was ? "bad" : "" }, change(is - was)), label]);
  if (left > 0) listed.push(["", "", "", `${grouped(left)} more`]);
  return listed.length ? listed : [["", "", "no change", ""]];
}

function copies({ summary: before }: Audit, { summary: after }: Audit): HTMLElement | null {
  const of = (all: typeof before) =>
    new Map((all?.copies?.lines ?? []).map((line) => [`${line.purpose}\n${sourceLabel(line.source) ?? line.instruction}`, { bytes: line.moved_bytes, label: `${shortPath(sourceLabel(line.source) ?? line.instruction)}, ${line.purpose}` }]));
  if (!before?.copies && !after?.copies) return null;
  const whole = (all: typeof before) => `${bytes(all?.copies?.moved_bytes ?? 0)} in ${grouped(all?.copies?.copies ?? 0)}`;
  return el("section", { "aria-label": "Copies" }, el("h2", {}, `Copies: ${whole(before)} → ${whole(after)}`), table(["before", "after", "change", "line"], changes(of(before), of(after))));
}

function table(names: string[], rows: (string | HTMLElement)[][]): HTMLElement {
  const kind = (at: number) => (at < 3 ? "number" : "");
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": names.join(", ") },
    el("table", {}, el("thead", {}, el("tr", {}, names.map((name, at) => el("th", { scope: "col", class: kind(at) }, name)))), el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) => el("td", { class: kind(at) }, cell)))))),
  );
}

const LEFT = 76;
const LINES = [
  { color: "--muted", dash: [5, 3], words: "before" },
  { color: "--accent", dash: [], words: "after" },
];

/// Both over their order, each from its first step to its last.
function over(programs: Compared[]): HTMLElement | null {
  const profiles = programs.map(({ audit: { timeline } }) => timeline && new Profile(timeline, new Uint16Array(timeline.pieces.first.length), 1));
  if (!profiles.every((profile) => profile !== null)) return null;
  const canvas = el("canvas", { role: "img", "aria-label": `Memory over the order of both programs, at most ${programs.map(({ audit }) => bytes(audit.report.at_most_bytes)).join(" and ")}` });
  const frame = el("div", { class: "timeline short" }, canvas);
  const most = Math.max(...profiles.map((profile) => profile!.total[profile!.fullest(0, profile!.moments)]!), 1);
  const draw = () => {
    const [width, height, ratio] = [frame.clientWidth, frame.clientHeight, devicePixelRatio || 1];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const context = canvas.getContext("2d");
    if (!context || width <= LEFT) return;
    const style = getComputedStyle(frame);
    const color = (name: string) => style.getPropertyValue(name).trim();
    context.scale(ratio, ratio);
    context.font = `11px ${style.fontFamily}`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const y = (amount: number) => height - 6 - (amount / most) * (height - 20);
    for (const amount of round(most, 4)) {
      context.fillStyle = color("--line");
      context.fillRect(LEFT, Math.round(y(amount)), width - LEFT, 1);
      context.fillStyle = color("--muted");
      context.fillText(rounded(amount), LEFT - 6, y(amount));
    }
    profiles.forEach((profile, at) => {
      const { moments, total } = profile!;
      const columns = Math.floor(width - LEFT);
      context.strokeStyle = color(LINES[at]!.color);
      context.lineWidth = 1.5;
      context.setLineDash(LINES[at]!.dash);
      context.beginPath();
      for (let column = 0; column < columns; column++) {
        const from = Math.floor((column * moments) / columns);
        const to = Math.max(from + 1, Math.floor(((column + 1) * moments) / columns));
        context.lineTo(LEFT + column, y(total[profile!.fullest(from, to)]!));
      }
      context.stroke();
    });
  };
  redrawn(frame, draw);
  new ResizeObserver(draw).observe(frame);
  const keys = programs.map(({ name }, at) => el("span", {}, el("i", { style: `background:var(${LINES[at]!.color})` }), `${LINES[at]!.words}: ${name}`));
  return el("section", { "aria-label": "Memory over both programs' order" }, el("h2", {}, "Memory over the programs’ order"), frame, el("p", { class: "keys" }, keys));
}
