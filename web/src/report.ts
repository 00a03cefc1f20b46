// The page of one report: its data is inside, and nothing else is asked for.

import "./style.css";
import { el, fill, theme } from "./dom";
import { audit, type Report, type Summary, type TimelineJson } from "./program/data";
import { programView } from "./program/view";

interface Embedded {
  report: Report;
  timeline: TimelineJson | null;
  summary: Summary;
  /// Pictures of the shapes that rows may be asked for.
  pictures: Record<string, string>;
}

const page = document.querySelector("#page")!;
const { report, summary, timeline, pictures } = JSON.parse(document.querySelector("#report")!.textContent!) as Embedded;
theme();
document.title = `${summary.title}: memory`;
fill(
  page,
  programView(audit(report, summary, timeline), { pictures: async (shape) => pictures[shape] ?? null }),
  el("footer", { class: "muted" }, "Made by tilewise; this file needs no network. ", el("button", { type: "button", "aria-label": "Light or dark", onclick: () => theme(true) }, "◐")),
);
