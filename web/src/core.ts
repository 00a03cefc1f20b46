// Asks the core, which works in a worker.

import { isDark } from "./dom";
import { UNLOADED } from "./unloaded";
import type { Calls } from "./worker";

/// Why there is no answer, in the words of the core.
export class CoreError extends Error {
  readonly kind: string;
  /// In UTF-16 units of the text that was asked about.
  readonly span: [number, number] | null;
  readonly help: string | null;

  constructor(json: string) {
    const error = JSON.parse(json) as { kind: string; message: string; span?: [number, number]; help?: string };
    super(error.message);
    this.kind = error.kind;
    this.span = error.span ?? null;
    this.help = error.help ?? null;
  }
}

interface Waiting {
  resolve: (answer: never) => void;
  reject: (error: unknown) => void;
}

let worker: Worker | undefined;
const waiting = new Map<number, Waiting>();
let asked = 0;

function start(): Worker {
  const started = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  started.onmessage = ({ data }: MessageEvent<{ id: number; answer?: unknown; error?: string }>) => {
    const asker = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error !== undefined) {
      const error = new CoreError(data.error);
      // Its memory is lost: the next question goes to a new one.
      if (error.kind === "memory") stop();
      asker?.reject(error);
    } else asker?.resolve(data.answer as never);
  };
  started.onerror = (event) => {
    event.preventDefault();
    lost(UNLOADED);
  };
  return started;
}

/// Gives the core up, with whatever it is doing.
export function stop(): void {
  lost('{"kind":"stopped","message":"stopped"}');
}

function lost(why: string): void {
  worker?.terminate();
  worker = undefined;
  const error = new CoreError(why);
  for (const asker of waiting.values()) asker.reject(error);
  waiting.clear();
}

export function ask<K extends keyof Calls>(call: K, ...args: Parameters<Calls[K]>): Promise<Awaited<ReturnType<Calls[K]>>> {
  worker ??= start();
  const id = asked++;
  const answer = new Promise<Awaited<ReturnType<Calls[K]>>>((resolve, reject) => waiting.set(id, { resolve, reject }));
  // Bytes are handed over, not copied: they may be many.
  const handed = args.flatMap((arg) => (arg instanceof Uint8Array && arg.byteLength > 1 << 16 ? [arg.buffer] : []));
  worker.postMessage({ id, call, args }, handed as Transferable[]);
  return answer;
}

/// An answer in JSON.
export async function json<T>(call: keyof Calls, ...args: unknown[]): Promise<T> {
  return JSON.parse((await ask(call, ...(args as never))) as string) as T;
}

/// A shape's picture as SVG, in the page's colours. `slices` has pairs of a dimension and its index.
export function drawn(shape: string, view = "both", other?: string, slices: number[] = []): Promise<string> {
  return ask("draw", shape, view, other, new Uint32Array(slices), new Uint32Array(), isDark() ? "dark" : "light");
}
