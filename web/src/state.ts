// What the page shows, as an address: small inputs whole, compressed.

export type State =
  | { view: "home" }
  | { view: "shape"; text: string; other?: string; picture?: string }
  | { view: "message"; text: string }
  | { view: "program"; name: string; text?: string; tpu?: string; moment?: number }
  | { view: "report"; name: string; text?: string };

/// An address that is longer than this gets cut on its way, by chats and logs.
const LONGEST = 30_000;

async function through(bytes: Uint8Array, stream: TransformStream): Promise<Uint8Array> {
  const piped = new Blob([bytes as BlobPart]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

/// The part of the address behind the #; null for what is too large for one.
export async function encode(state: State): Promise<string | null> {
  if (state.view === "home") return "";
  if (state.view === "shape") {
    const fields = Object.entries(state).filter(([key, value]) => key !== "view" && value);
    const names: Record<string, string> = { text: "shape" };
    return fields.map(([key, value]) => `${names[key] ?? key}=${encodeURIComponent(String(value))}`).join("&");
  }
  if (state.view !== "message" && state.text === undefined) return null;
  if ((state.text?.length ?? 0) > 50 * LONGEST) return null;
  const small = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(small, (byte) => String.fromCharCode(byte)).join(""));
  const encoded = `z=${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  return encoded.length <= LONGEST ? encoded : null;
}

/// The state that an address names; home for one that names none.
export async function decode(hash: string): Promise<State> {
  const fields = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  const shape = fields.get("shape");
  if (shape !== null) {
    const [other, picture] = [fields.get("other"), fields.get("picture")];
    return { view: "shape", text: shape, ...(other && { other }), ...(picture && { picture }) };
  }
  const small = fields.get("z");
  if (!small) return { view: "home" };
  try {
    const text = atob(small.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const state = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
    return typeof state?.view === "string" ? state : { view: "home" };
  } catch {
    return { view: "home" };
  }
}
