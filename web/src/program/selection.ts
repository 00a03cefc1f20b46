// What happens in a part of a run: what is allocated and freed there, and by whom.

import { bytes, el, fill, grouped } from "../dom";
import { duration, type Axis } from "./axis";
import type { Timeline } from "./data";
import type { Profile } from "./profile";

/// Lines that are named.
const NAMED = 3;

export interface Selection {
  element: HTMLElement;
  /// Says what happens between two moments, both of them included; nothing hides it.
  show(range: [number, number] | null): void;
}

export function selection(timeline: Timeline, profile: Profile, timed: Axis | null, cleared: () => void): Selection {
  const element = el("p", { class: "selection", "aria-live": "polite", hidden: true });
  const { first, last, owner, bytes: taken } = timeline.pieces;

  function show(range: [number, number] | null) {
    element.hidden = range === null;
    if (!range) return;
    const [from, to] = range;
    const held = new Map<number, number>();
    let [allocated, count, freed] = [0, 0, 0];
    for (let piece = 0; piece < first.length; piece++) {
      if (last[piece]! >= from && last[piece]! < to) freed += taken[piece]!;
      if (first[piece]! < from || first[piece]! > to) continue;
      allocated += taken[piece]!;
      count += 1;
      held.set(owner[piece]!, (held.get(owner[piece]!) ?? 0) + taken[piece]!);
    }
    const most = [...held].sort((a, b) => b[1] - a[1]).slice(0, NAMED);
    const fullest = profile.fullest(from, to + 1);
    const named = most.map(([owner, amount]) => `${timeline.owner_names[owner] ?? ""} ${bytes(amount)}`);
    fill(
      element,
      el("strong", {}, `Steps ${grouped(from + 1)} to ${grouped(to + 1)}: `),
      `${bytes(allocated)} allocated in ${grouped(count)} ${count === 1 ? "array" : "arrays"}, ${bytes(freed)} freed, at most ${bytes(profile.total[fullest]!)} in use (step ${grouped(fullest + 1)})`,
      timed && `, ${duration(timed.at(to + 1) - timed.at(from))} estimated`,
      ". ",
      named.length > 0 && `Most by ${named.join(", ")}. `,
      el("button", { type: "button", onclick: cleared }, "Clear"),
    );
  }
  return { element, show };
}
