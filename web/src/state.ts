// The page's state, as an address: small inputs whole, compressed.

import type { Shown } from "./program/memory";

/// How a program is looked at.
export interface Look {
  machine?: string;
  /// Which of a file's programs.
  at?: number;
  shown?: Shown;
}

export type State =
  | { view: "home" }
  | { view: "shape"; text: string; other?: string; picture?: string }
  | { view: "message"; name?: string; text?: string; kept?: string }
  | { view: "kernel"; name?: string; text?: string; kept?: string }
  | ({ view: "program"; name: string; text?: string; kept?: string } & Look)
  /// Several programs are too large for an address together.
  | { view: "pair" | "set"; name: string; text?: undefined; kept?: string }
  | { view: "report"; name: string; text?: string; kept?: string }
  /// An input that this browser keeps, not yet looked up.
  | ({ view: "kept"; kept: string } & Look)
  | { view: "damaged" };

/// An address that is longer than this gets cut on its way, by chats and logs.
const LONGEST = 30_000;

/// Texts in addresses are shorter, and an address that holds a longer one was made to fill memory.
const LONGEST_TEXT = 50 * LONGEST;

async function through(bytes: Uint8Array, stream: TransformStream): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = new Blob([bytes as BlobPart]).stream().pipeThrough(stream).getReader();
  for (let read; !(read = await reader.read()).done; ) {
    parts.push(read.value);
    length += read.value.length;
    if (length > 2 * LONGEST_TEXT) throw new RangeError("too long");
  }
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}

/// The part of the address behind the #; null for what is too large for one.
export async function encode(state: State): Promise<string | null> {
  if (state.view === "home") return "";
  if (state.view === "shape") {
    const fields = Object.entries(state).filter(([key, value]) => key !== "view" && value);
    const names: Record<string, string> = { text: "shape" };
    return fields.map(([key, value]) => `${names[key] ?? key}=${encodeURIComponent(String(value))}`).join("&");
  }
  if (state.view === "damaged") return null;
  if (state.kept !== undefined) {
    const { machine, at, shown } = state as Look;
    return new URLSearchParams({ kept: state.kept, ...(machine && { machine }), ...(at !== undefined && { at: `${at}` }), ...(shown && { shown: JSON.stringify(shown) }) }).toString();
  }
  if (state.view === "kept" || state.text === undefined || state.text.length > LONGEST_TEXT) return null;
  const small = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(small, (byte) => String.fromCharCode(byte)).join(""));
  const encoded = `z=${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  return encoded.length <= LONGEST ? encoded : null;
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

const isText = (value: unknown) => typeof value === "string";
const isMaybe = (value: unknown, is: (value: unknown) => boolean) => value === undefined || is(value);
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;

/// Anybody may have made an address.
function isLook(look: object): look is Look {
  const { machine, at, shown } = look as Record<string, unknown>;
  const isShown = (value: unknown) => {
    if (typeof value !== "object" || value === null) return false;
    const { moment, rows, module, filter, colours, width } = value as Record<string, unknown>;
    return isMaybe(moment, isCount) && [rows, filter, colours, width].every((text) => isMaybe(text, isText)) && isMaybe(module, (list) => Array.isArray(list) && list.every(isText));
  };
  return isMaybe(machine, isText) && isMaybe(at, isCount) && isMaybe(shown, isShown);
}

function isState(state: unknown): state is State {
  if (typeof state !== "object" || state === null) return false;
  const { view, text, name, other, picture, kept } = state as Record<string, unknown>;
  if (![text, name, other, picture].every((value) => isMaybe(value, isText)) || kept !== undefined) return false;
  if (view === "program") return isText(text) && isText(name) && isLook(state);
  return view === "home" || (isText(text) && ["shape", "message", "kernel", "report"].includes(view as string));
}

/// The state that an address names; home for one that names none.
export async function decode(hash: string): Promise<State> {
  const fields = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  const shape = fields.get("shape");
  if (shape !== null) {
    const [other, picture] = [fields.get("other"), fields.get("picture")];
    return { view: "shape", text: shape, ...(other && { other }), ...(picture && { picture }) };
  }
  const [kept, machine, at, shown] = ["kept", "machine", "at", "shown"].map((name) => fields.get(name));
  if (kept) {
    const look: object = { ...(machine && { machine }), ...(at && { at: Number(at) }), ...(shown && { shown: parsed(shown) }) };
    return isLook(look) ? { view: "kept", kept, ...look } : { view: "damaged" };
  }
  const small = fields.get("z");
  if (!small) return { view: hash.length > 1 ? "damaged" : "home" };
  try {
    const text = atob(small.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const state = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
    return isState(state) ? state : { view: "damaged" };
  } catch {
    return { view: "damaged" };
  }
}
