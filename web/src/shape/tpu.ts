// An array on a TPU: its layout and its waste, as type, dimensions and generation are moved.

import { json } from "../core";
import { bytes, el, fill, percent } from "../dom";
import type { Generation, Shown } from "./data";

const TYPES = ["f32", "bf16", "f16", "s32", "s8", "s4", "u32", "u8", "u4", "pred", "f8e4m3fn", "f8e5m2", "f64", "c64", "s64"];
/// Dimensions of a slider: a quarter of a power of two each step.
const STEPS = 80;
const MOST_DIMENSIONS = 6;

const size = (step: number) => Math.max(1, Math.round(2 ** (step / 4)));
const step = (size: number) => Math.min(STEPS, Math.round(4 * Math.log2(Math.max(size, 1))));

export function tpuPanel(start: Shown, generations: Generation[], open: (shape: string) => void): HTMLElement {
  let bounds = start.dimensions.slice(-MOST_DIMENSIONS);
  const choice = (label: string, names: string[], chosen: string) => {
    const all = names.includes(chosen) ? names : [chosen, ...names];
    return el("select", { "aria-label": label, onchange: () => void show() }, all.map((name) => el("option", { selected: name === chosen }, name)));
  };
  const tpu = choice("TPU generation", generations.map(({ name }) => name), "v5e");
  const type = choice("Element type", TYPES, start.element_type);
  const sliders = el("div", {});
  const result = el("div", { "aria-live": "polite" });

  function dimensions() {
    fill(
      sliders,
      bounds.map((bound, k) => {
        const slider = el("input", { type: "range", min: 0, max: STEPS, value: step(bound), "aria-label": `Dimension ${k}, by powers of two` });
        const number = el("input", { type: "number", min: 0, max: 2 ** 31, value: bound, "aria-label": `Dimension ${k}` });
        slider.addEventListener("input", () => ((number.value = String((bounds[k] = size(Number(slider.value))))), void show()));
        number.addEventListener("input", () => ((slider.value = String(step((bounds[k] = Math.max(0, Math.floor(Number(number.value)) || 0))))), void show()));
        return el("label", {}, `dimension ${k}`, slider, number);
      }),
      el(
        "div",
        { class: "actions" },
        el("button", { type: "button", disabled: bounds.length >= MOST_DIMENSIONS, onclick: () => change([...bounds, 128]) }, "+ dimension"),
        el("button", { type: "button", disabled: bounds.length <= 1, onclick: () => change(bounds.slice(0, -1)) }, "− dimension"),
      ),
    );
  }
  function change(to: number[]) {
    bounds = to;
    dimensions();
    void show();
  }
  async function show() {
    try {
      const { shape, logical_bytes: data, physical_bytes: takes, padding_bytes: padding, causes, physical_dimensions: sized } = await json<Shown>("predict", type.value, new Uint32Array(bounds), tpu.value);
      fill(
        result,
        el("p", {}, el("button", { type: "button", class: "link", onclick: () => open(shape) }, el("code", {}, shape))),
        sized && el("div", { class: "budget", role: "img", "aria-label": `${percent(padding, takes)} padding` }, el("span", { style: `width:${(100 * data) / Math.max(takes, 1)}%;background:var(--tile-0)` }), el("span", { class: "hatched", style: "flex:1" })),
        sized && el("p", {}, `${bytes(data)} of data take ${bytes(takes)}: `, el("strong", { class: padding * 2 > takes ? "bad" : "" }, padding > 0 ? `${percent(padding, takes)} padding` : "no padding"), causes.length > 0 && `; ${causes.join("; ")}`, "."),
      );
    } catch (error) {
      fill(result, el("p", { class: "bad" }, error instanceof Error ? error.message : String(error)));
    }
  }
  dimensions();
  void show();
  return el("div", { class: "panel tpu" }, el("h2", {}, "On a TPU"), el("div", { class: "actions" }, tpu, type), sliders, result);
}
