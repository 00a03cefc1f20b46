// A program's text: its lines, where a name is defined, and who uses it. Of a large one it lies in the worker.

/// A line, and its number from 0.
export interface Line {
  at: number;
  text: string;
}

const DEFINED = /^\s*(?:ROOT )?%?([\w.-]+) = /;

export class Text {
  private readonly lines: string[];
  private readonly defined = new Map<string, number>();

  constructor(text: string) {
    this.lines = text.split("\n");
    this.lines.forEach((line, at) => {
      const name = DEFINED.exec(line)?.[1];
      // Parameters of computations may be called alike: the entry, which comes last, has the name.
      if (name) this.defined.set(name, at);
    });
  }

  /// Lines around one of them.
  around(at: number, reach: number): { lines: Line[]; count: number } {
    const from = Math.min(Math.max(at - reach, 0), Math.max(this.lines.length - 2 * reach - 1, 0));
    return { lines: this.lines.slice(from, from + 2 * reach + 1).map((text, k) => ({ at: from + k, text })), count: this.lines.length };
  }

  definition(name: string): number | null {
    return this.defined.get(name) ?? null;
  }

  /// The first lines that a name is used in, behind its definition and before the end of its computation.
  uses(name: string, most: number): Line[] {
    const found: Line[] = [];
    const word = new RegExp(`(?<![\\w.-])${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w.-])`);
    for (let at = (this.defined.get(name) ?? -1) + 1; at < this.lines.length && found.length < most; at++) {
      const text = this.lines[at]!;
      if (text.startsWith("}")) break;
      if (text.includes(name) && word.test(text)) found.push({ at, text });
    }
    return found;
  }

  /// The next line with a text, case aside, from one on and round.
  find(text: string, from: number): number | null {
    const wanted = text.toLowerCase();
    for (let k = 0; k < this.lines.length; k++) {
      const at = (from + k) % this.lines.length;
      if (this.lines[at]!.toLowerCase().includes(wanted)) return at;
    }
    return null;
  }

  /// Whether a word of a line is defined somewhere.
  known(words: string[]): string[] {
    return words.filter((word) => this.defined.has(word));
  }
}

/// The calls to a text, wherever it lies.
export interface Texts {
  ask<K extends keyof Text>(call: K, ...args: Parameters<Text[K]>): Promise<ReturnType<Text[K]>>;
}

/// A text that lies here.
export function here(text: string): Texts {
  let made: Text | undefined;
  return {
    async ask(call, ...args) {
      made ??= new Text(text);
      return (made[call] as (...args: unknown[]) => never).apply(made, args);
    },
  };
}
