// The page of one report: its data is inside, and nothing else is asked for.

import "./style.css";
import { el, fill } from "./dom";
import { audit, type Audit, type Report, type TimelineJson } from "./program/data";
import { programView } from "./program/view";

interface Embedded {
  report: Report;
  timeline: TimelineJson | null;
  facts: Audit["facts"];
  /// Pictures of the shapes that rows may be asked for.
  pictures: Record<string, string>;
}

const page = document.querySelector("#page")!;
const { report, timeline, facts, pictures } = JSON.parse(document.querySelector("#report")!.textContent!) as Embedded;
document.title = `${report.module || report.input}: memory`;
fill(
  page,
  programView(audit(report, timeline, facts), { pictures: async (shape) => pictures[shape] ?? null }),
  el("footer", { class: "muted" }, "Made by tilewise; this file needs no network."),
);
