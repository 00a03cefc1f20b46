// The whole of a run, small, with a frame around the part that is looked at.

import { el, redrawn } from "../dom";
import type { Axis } from "./axis";
import { LEFT } from "./picture";
import type { Profile } from "./profile";

export interface Minimap {
  element: HTMLElement;
  show(range: [number, number]): void;
}

/// `moved` hears where the middle of the part is to be.
export function minimap(profile: Profile, axis: Axis, moved: (place: number) => void): Minimap {
  const canvas = el("canvas", { "aria-hidden": "true" });
  const element = el("div", { class: "minimap whole", title: "The whole program: drag the frame" }, canvas);
  let range: [number, number] = [0, axis.length];

  function draw() {
    const [width, height, ratio] = [element.clientWidth, element.clientHeight, devicePixelRatio || 1];
    const context = canvas.getContext("2d");
    if (!context || width <= LEFT) return;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    context.scale(ratio, ratio);
    const style = getComputedStyle(element);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const plot = width - LEFT - 10;
    const most = profile.total[profile.fullest(0, profile.moments)] || 1;
    context.fillStyle = color("--other");
    for (let column = 0; column < plot; column++) {
      const from = axis.moment((column * axis.length) / plot);
      const to = axis.moment(((column + 1) * axis.length) / plot);
      const share = profile.total[profile.fullest(from, Math.max(to, from + 1))]! / most;
      context.fillRect(LEFT + column, height * (1 - share), 1, height * share);
    }
    const x = (place: number) => LEFT + (place / axis.length) * plot;
    const [left, right] = [x(range[0]), Math.max(x(range[1]), x(range[0]) + 3)];
    context.fillStyle = color("--background");
    context.globalAlpha = 0.65;
    context.fillRect(LEFT, 0, left - LEFT, height);
    context.fillRect(right, 0, LEFT + plot - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = color("--link");
    context.lineWidth = 2;
    context.strokeRect(left, 1, right - left, height - 2);
  }
  const go = (event: PointerEvent) => {
    const plot = element.clientWidth - LEFT - 10;
    moved(((event.clientX - element.getBoundingClientRect().left - LEFT) / plot) * axis.length);
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    go(event);
  });
  element.addEventListener("pointermove", (event) => element.hasPointerCapture(event.pointerId) && go(event));
  redrawn(element, draw);
  new ResizeObserver(draw).observe(element);
  return {
    element,
    show(next) {
      range = next;
      element.classList.toggle("whole", range[1] - range[0] >= axis.length * 0.999);
      draw();
    },
  };
}
