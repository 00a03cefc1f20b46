// Programs that tests open.

import { readdirSync, readFileSync } from "node:fs";
import { hlo, root } from "./page";

export const GNN = "examples/gnn_large.v5e.hlo";
export const DUMP = `${root}/testing/programs/dump`;

/// Programs in the tree: examples, and what tests have, text and proto, plain and gzip; and, if named, a folder's.
export function programs(): { name: string; bytes: Buffer }[] {
  const folders = ["examples", "testing/programs"];
  const others = (process.env["TILEWISE_PROGRAMS"] ?? "").split(":").filter(Boolean);
  return [...folders.map((folder) => `${root}/${folder}`), ...others].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /\.(hlo|hlo\.gz|pb|pb\.gz)$/.test(name))
      .map((name) => ({ name, bytes: readFileSync(`${folder}/${name}`) })),
  );
}

/// The example with half as many edges: what is as long as they are is half as large.
export const half = () => Buffer.from(hlo(GNN).toString().replaceAll("400000", "200000").replaceAll("400384", "200704"));

/// Layers that keep an array each, all of one line, for the backward pass.
export function layers(count: number): Buffer {
  const [wide, thin] = ["f32[512,8192]{1,0:T(8,128)}", "f32[512,1024]{1,0:T(8,128)}"];
  const line = (name: string, shape: string, from: string, path: string) => `  ${name} = ${shape} custom-call(${from}), custom_call_target="f", metadata={op_name="jit(step)/${path}/dot_general" source_file="net.py" source_line=7}`;
  const numbers = Array.from({ length: count }, (_, k) => k);
  const forward = numbers.flatMap((k) => [line(`k.${k}`, wide, `x.${k}`, `jvp(layer_${k})`), line(`x.${k + 1}`, thin, `k.${k}`, `jvp(layer_${k})`)]);
  const backward = [...numbers].reverse().map((k) => line(`g.${k}`, thin, `x.${k}, k.${k}, ${k === count - 1 ? `x.${count}` : `g.${k + 1}`}`, `transpose(jvp(layer_${k}))`));
  const text = ["HloModule jit_step, is_scheduled=true", "", `ENTRY main (x.0: f32[512,1024]) -> f32[512,1024] {`, `  x.0 = ${thin} parameter(0), metadata={op_name="x"}`, ...forward, ...backward, `  ROOT r = ${thin} add(g.0, g.0)`, "}"];
  return Buffer.from(text.join("\n"));
}

/// A program that holds more than there is, each array of one line of a library.
export function tooLarge(): Buffer {
  const text = layers(24).toString().replaceAll("f32[512,8192]", "f32[8192,32768]");
  return Buffer.from(text);
}
