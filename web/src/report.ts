// The page of one report, of a program or of two: its data is inside, and nothing else is asked for.

import "./style.css";
import { el, fill, theme } from "./dom";
import { embeddedView, isComparison, type Embedded } from "./embedded";
import { compareView, type ComparisonPage } from "./program/compare";

const data = JSON.parse(document.querySelector("#report")!.textContent!) as Embedded | ComparisonPage;
if (!isComparison(data)) document.title = `${data.summary.title}: memory`;
theme();
fill(
  document.querySelector("#page")!,
  isComparison(data) ? compareView(data) : embeddedView(data),
  el("footer", { class: "muted" }, "Made by tilewise; this file needs no network. ", el("button", { type: "button", "aria-label": "Light or dark", onclick: () => theme(true) }, "◐")),
);
