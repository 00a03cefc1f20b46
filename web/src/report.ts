// The page of one report: its data is inside, and nothing else is asked for.

import "./style.css";
import { el, fill } from "./dom";
import type { Audit } from "./program/data";
import { programView } from "./program/view";

interface Embedded extends Audit {
  /// Pictures of the shapes that rows may be asked for.
  pictures: Record<string, string>;
}

const page = document.querySelector("#page")!;
const { pictures, ...audit } = JSON.parse(document.querySelector("#report")!.textContent!) as Embedded;
document.title = `${audit.report.module || audit.report.input}: memory`;
fill(
  page,
  programView(audit, { pictures: async (shape) => pictures[shape] ?? null }),
  el("footer", { class: "muted" }, "Made by tilewise; this file needs no network."),
);
