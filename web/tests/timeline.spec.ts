// Memory over a program's order: what pointer, keys and fingers do, and what is drawn.

import { accessible, expect, hlo, openProgram, test, timeline } from "./page";
import { GNN, layers } from "./programs";

test("pointer and keys move along the program, and the rows follow", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const slider = page.getByRole("slider", { name: "Moment in the program's order" });
  await expect(slider).toHaveAttribute("aria-valuenow", "22");
  await expect(page.getByRole("heading", { name: /At the peak: 311.30 MiB/ })).toBeVisible();
  await slider.focus();
  await page.keyboard.press("Home");
  await expect(page.getByRole("heading", { name: /At step 1:/ })).toBeVisible();
  await page.keyboard.press("ArrowRight");
  await expect(slider).toHaveAttribute("aria-valuenow", "2");
  await page.keyboard.press("p");
  await expect(slider).toHaveAttribute("aria-valuenow", "22");
  const { box: place } = await timeline(page);
  const box = await place();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await expect(page.getByRole("heading", { name: /At step \d:/ })).toBeVisible();
  await page.mouse.move(box.x + box.width / 2, box.y - 60);
  await expect(page.getByRole("heading", { name: /At the peak/ })).toBeVisible();
});

test("an allocation in the picture is its row, its detail and its line in the text", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  // Under the pointer at the peak, from address 0 on.
  await page.locator("summary", { hasText: "The program’s text" }).click();
  await expect(page.locator(".lines")).toContainText(" = ");
  const { frame, box } = await timeline(page);
  const inside = await box();
  const moments = Number(await frame.getAttribute("aria-valuemax"));
  const at = Number(await frame.getAttribute("aria-valuenow")) - 0.5;
  await page.mouse.move(inside.x + 76 + (at / moments) * (inside.width - 86), inside.y + inside.height - 20);
  await expect(page.locator(".tip")).toContainText("at byte");
  await page.mouse.down();
  await page.mouse.up();
  await expect(page.locator(".detail")).toContainText("temporary of");
  await expect(page.locator("table.alive tr[aria-current]")).toHaveCount(1);
  const instruction = (await page.locator(".detail button.link").first().textContent())!;
  await expect(page.locator(".lines [aria-current]")).toContainText(`${instruction} = `);
});

test("the wheel and a drag move through the program, and the page scrolls otherwise", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const { box: place, picture } = await timeline(page);
  const whole = await picture();
  const box = await place();
  await page.mouse.move(box.x + box.width / 2, box.y + 100);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -120);
  await page.keyboard.up("Control");
  await expect.poll(picture).not.toBe(whole);
  const near = await picture();
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 - 200, box.y + 100, { steps: 4 });
  await page.mouse.up();
  await expect.poll(picture).not.toBe(near);
  await page.getByRole("button", { name: "The whole program" }).click();
  await page.mouse.move(box.x, box.y - 30);
  await expect.poll(picture).toBe(whole);
});

test("two fingers zoom, and one moves along", async ({ quiet: page, context }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const { box: place, picture } = await timeline(page);
  const [whole, box] = [await picture(), await place()];
  const devtools = await context.newCDPSession(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...fingers: number[]) =>
    devtools.send("Input.dispatchTouchEvent", { type, touchPoints: fingers.map((x, id) => ({ x: box.x + x, y: box.y + 100, id })) });
  await touch("touchStart", 500, 600);
  for (const by of [20, 60, 120]) await touch("touchMove", 500 - by, 600 + by);
  await touch("touchEnd");
  await expect.poll(picture).not.toBe(whole);
  const near = await picture();
  await touch("touchStart", 600);
  for (const by of [20, 60, 120]) await touch("touchMove", 600 - by);
  await touch("touchEnd");
  await expect.poll(picture).not.toBe(near);
  await touch("touchStart", 300, 700);
  for (const by of [50, 120, 195]) await touch("touchMove", 300 + by, 700 - by);
  await touch("touchEnd");
  await touch("touchStart", 100, 900);
  for (const by of [100, 200, 395]) await touch("touchMove", 100 + by, 900 - by);
  await touch("touchEnd");
  await expect.poll(picture).toBe(whole);
});

test("padding is striped in arguments, from the lowest", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "kv_decode_row_major.v5e.hlo", hlo("examples/kv_decode_row_major.v5e.hlo"));
  const { canvas } = await timeline(page);
  // `k` and `v` are 20 MiB of data and 44 MiB of padding each. `k` is the lowest of all 168 MiB.
  const inks = (share: number) =>
    canvas.evaluate((canvas: HTMLCanvasElement, share) => {
      const bottom = canvas.height - 6 - 28;
      const { data } = canvas.getContext("2d")!.getImageData(canvas.width / 2, bottom - (bottom - 34) * share, 20, 1);
      return new Set(new Uint32Array(data.buffer)).size;
    }, share);
  expect(await inks(0.06)).toBe(1);
  expect(await inks(0.25)).toBeGreaterThan(1);
  expect(await inks(0.6)).toBeGreaterThan(1);
});

test("layers have colours of their own, and rows of several layers none of them", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "net.hlo", layers(4));
  const { picture } = await timeline(page);
  const swatch = page.locator("table.alive tbody tr", { hasText: "f32[512,8192]" }).locator("i");
  // One line holds everything, so that layers have the colours from the start.
  await expect(page.getByRole("button", { name: "By layer" })).toHaveAttribute("aria-pressed", "true");
  await expect(page.locator(".keys").last()).toContainText("layer_3");
  await expect(swatch).toHaveAttribute("style", /--other/);
  const byLayer = await picture();
  await page.getByRole("group", { name: "Colours" }).getByRole("button", { name: "By line" }).click();
  await expect.poll(picture).not.toBe(byLayer);
  await expect(swatch).toHaveAttribute("style", /--tile-0/);
  await accessible(page);
});

test("the chart stays beside what is chosen, answers hovering, zooms to the peak, and sums a part", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "net.hlo", layers(40));
  const { frame, box: place, picture } = await timeline(page);
  const box = await place();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.45);
  await expect(page.locator(".tip")).toContainText(/step \d+: .* in use, .* without padding/);
  const whole = await picture();
  await page.getByRole("button", { name: "To the peak" }).click();
  await expect(page.locator(".minimap")).toBeVisible();
  await expect.poll(picture).not.toBe(whole);
  const near = await picture();
  await frame.focus();
  await page.keyboard.press("s");
  await expect.poll(picture).not.toBe(near);
  const now = await place();
  await page.keyboard.down("Shift");
  await page.mouse.move(now.x + now.width * 0.4, now.y + 80);
  await page.mouse.down();
  await page.mouse.move(now.x + now.width * 0.6, now.y + 80, { steps: 3 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await expect(page.locator(".selection")).toContainText(/Steps \d+ to \d+: .* allocated in \d+ arrays, .* freed, at most .* in use/);
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(page.locator(".selection")).toBeHidden();
  // The filter finds arrays of other moments, and goes there.
  await page.getByLabel("Filter the table").fill("op:g.0");
  await expect(page.locator("tr.away").first()).toBeVisible();
  const top = await page.evaluate(() => scrollY);
  await page.locator("tr.away").first().getByRole("button").last().evaluate((button: HTMLElement) => button.click());
  await expect(page.locator(".detail")).toBeVisible();
  expect(await page.evaluate(() => scrollY)).toBe(top);
});

test("an axis of time, where the text has cycle counts", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const { picture } = await timeline(page);
  const order = await picture();
  await page.getByRole("button", { name: "Estimated time" }).click();
  await expect.poll(picture).not.toBe(order);
  await expect(page.locator(".keys").last()).toContainText("time only bounded");
  await openProgram(page, "lstm.hlo", layers(4));
  await expect(page.locator(".lead")).toContainText("Holds");
  await expect(page.getByRole("button", { name: "Estimated time" })).toHaveCount(0);
});
