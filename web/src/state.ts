// What the page shows, as an address: small inputs whole, compressed.

export type State =
  | { view: "home" }
  | { view: "shape"; text: string; other?: string; picture?: string }
  | { view: "message"; name?: string; text?: string; kept?: string }
  | { view: "program"; name: string; text?: string; kept?: string; machine?: string; moment?: number }
  /// Two programs are too large for an address together.
  | { view: "pair"; name: string; text?: undefined; kept?: string }
  | { view: "report"; name: string; text?: string; kept?: string }
  /// What this browser keeps, not yet looked up.
  | { view: "kept"; kept: string; machine?: string }
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
  if (state.kept !== undefined) return new URLSearchParams({ kept: state.kept, ...("machine" in state && state.machine && { machine: state.machine }) }).toString();
  if (state.view === "kept" || state.text === undefined || state.text.length > LONGEST_TEXT) return null;
  const small = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(small, (byte) => String.fromCharCode(byte)).join(""));
  const encoded = `z=${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  return encoded.length <= LONGEST ? encoded : null;
}

const VIEWS = ["home", "shape", "message", "program", "report"];

/// The state that an address names; home for one that names none.
export async function decode(hash: string): Promise<State> {
  const fields = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  const shape = fields.get("shape");
  if (shape !== null) {
    const [other, picture] = [fields.get("other"), fields.get("picture")];
    return { view: "shape", text: shape, ...(other && { other }), ...(picture && { picture }) };
  }
  const [kept, machine] = [fields.get("kept"), fields.get("machine")];
  if (kept) return { view: "kept", kept, ...(machine && { machine }) };
  const small = fields.get("z");
  if (!small) return { view: hash.length > 1 ? "damaged" : "home" };
  try {
    const text = atob(small.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const state = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
    return VIEWS.includes(state?.view) ? state : { view: "damaged" };
  } catch {
    return { view: "damaged" };
  }
}
