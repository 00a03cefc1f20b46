// Files opened together, as tabs: they stay while the history is walked through, and when the page is loaded again.

import { el, fill, tabs } from "./dom";
import type { Input } from "./input";
import { keep, kept, nextName } from "./kept";

/// Several inputs, of which one is shown.
interface Group {
  name: string;
  inputs: Input[];
}

interface Recalled {
  group: Group | undefined;
  tab: number;
}

export interface Files {
  element: HTMLElement;
  /// The group and the tab, to keep in an entry of the history.
  entry: () => { group?: string; tab?: number };
  /// Takes these for what is shown together, `at` first; fewer than two are none.
  open: (inputs: Input[], at: number) => void;
  /// The group and the tab that an entry of the history kept.
  recall: (entry: unknown) => Promise<Recalled>;
  /// Shows that again.
  restore: (recalled: Recalled) => void;
}

/// `chosen` hears of the input whose tab is pressed.
export function openedTogether(chosen: (input: Input) => void): Files {
  const element = el("nav", { "aria-label": "Opened together" });
  const known = new Map<string, Group>();
  let group: Group | undefined;
  let tab = 0;

  function draw() {
    if (!group) return fill(element);
    const { inputs } = group;
    const label = (input: Input) => ({ pair: "Compare", set: "Together" })[input.kind as string] ?? input.name;
    const names = inputs.map((input, at) => [`${at}`, label(input)] as const);
    const choose = (at: string) => {
      tab = Number(at);
      chosen(inputs[tab]!);
    };
    fill(element, tabs("Files", names, `${tab}`, choose));
  }
  return {
    element,
    entry: () => (group ? { group: group.name, tab } : {}),
    open(inputs, at) {
      [group, tab] = [inputs.length > 1 ? { name: nextName(), inputs } : undefined, at];
      if (group) {
        known.set(group.name, group);
        // A browser that keeps nothing has them until it is loaded again.
        void keep(group.name, inputs).catch(() => {});
      }
      draw();
    },
    async recall(entry) {
      const { group: name, tab: at = 0 } = (entry ?? {}) as { group?: string; tab?: number };
      if (name && !known.has(name)) {
        const inputs = await kept<Input[]>(name).catch(() => undefined);
        if (inputs) known.set(name, { name, inputs });
      }
      return { group: name ? known.get(name) : undefined, tab: at };
    },
    restore(recalled) {
      ({ group, tab } = recalled);
      draw();
    },
  };
}
