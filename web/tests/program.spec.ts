import type { Page } from "@playwright/test";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { accessible, commandLine, expect, hlo, open, root, test } from "./page";

const GNN = "examples/gnn_large.v5e.hlo";
const DUMP = `${root}/testing/programs/dump`;

/// Programs in the tree: examples, and what tests have, text and proto, plain and gzip; and, if named, a folder's.
function programs(): { name: string; bytes: Buffer }[] {
  const folders = ["examples", "testing/programs"];
  const others = (process.env["TILEWISE_PROGRAMS"] ?? "").split(":").filter(Boolean);
  return [...folders.map((folder) => `${root}/${folder}`), ...others].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /\.(hlo|hlo\.gz|pb|pb\.gz)$/.test(name))
      .map((name) => ({ name, bytes: readFileSync(`${folder}/${name}`) })),
  );
}

test("the story at the peak, and the line to change", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  await expect(page.getByRole("heading", { level: 1 })).toContainText("jit_f");
  await expect(page.locator(".lead")).toContainText("Holds 311.37 MiB of HBM at most");
  await expect(page.locator(".story")).toContainText("268.58 MiB of it is padding, 86.3 %.");
  await expect(page.locator(".advice li").first()).toContainText("→ 45.90 MiB");
  await expect(page.locator(".advice li").first()).toContainText("model.py:439");
  await expect(page.locator(".story")).toContainText("The peak: model.py:439");
  await accessible(page);
});

test("pointer and keys move along the program, and the rows follow", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
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
  const box = (await slider.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await expect(page.getByRole("heading", { name: /At step \d:/ })).toBeVisible();
  await page.mouse.move(box.x + box.width / 2, box.y - 60);
  await expect(page.getByRole("heading", { name: /At the peak/ })).toBeVisible();
});

test("what is alive at a moment adds up to the audit's own sum", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  const report = JSON.parse(execFileSync(commandLine(), ["audit", "gnn_large.v5e.hlo", "--format", "json"], { cwd: `${root}/examples`, encoding: "utf8" }));
  const peak = report.memory_spaces[0].peak_live_bytes / 2 ** 20;
  await expect(page.getByRole("heading", { name: `At the peak: ${peak.toFixed(2)} MiB` })).toBeVisible();
});

test("a row shows its layout and its fix", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  await page.locator("table.alive tbody tr").first().getByRole("button").last().click();
  const detail = page.locator(".detail");
  await expect(detail).toContainText("f32[400000,12]{1,0:T(8,128)}");
  await expect(detail.locator("svg")).toBeVisible();
  await expect(detail).toContainText("padding");
  await page.locator(".advice li button.link").first().click();
  await expect(detail.locator(".fix")).toContainText("→ 45.90 MiB");
  await page.getByRole("button", { name: "By line" }).click();
  await expect(page.locator("table.alive tbody tr").first()).toContainText("model.py:439");
});

test("rows: filtered, sorted, opened by line, by keyboard", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  const rows = page.locator("table.alive tbody tr");
  await expect(rows.first()).toBeVisible();
  await page.getByLabel("Filter the table").fill("role:argument");
  for (const row of await rows.all()) await expect(row).toContainText("argument");
  await page.getByLabel("Filter the table").fill("shape:bf16[400000,12] line:model");
  await expect(rows).toHaveCount(1);
  await page.getByLabel("Filter the table").fill("");
  await page.getByRole("columnheader", { name: "padding" }).getByRole("button").click();
  await expect(page.getByRole("columnheader", { name: "padding" })).toHaveAttribute("aria-sort", "descending");
  const [first, second] = [await rows.nth(0).getByRole("button").last().textContent(), await rows.nth(1).getByRole("button").last().textContent()];
  await rows.nth(0).getByRole("button").last().focus();
  await page.keyboard.press("ArrowDown");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(second);
  await page.keyboard.press("ArrowUp");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(first);
  await page.getByRole("button", { name: "By line" }).last().click();
  const opens = page.locator("table.alive .opens").first();
  const before = await rows.count();
  await opens.click();
  expect(await rows.count()).toBeGreaterThan(before);
  await accessible(page);
});

test("a row that is chosen is announced, marked, and closed by Escape", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  await page.locator("table.alive tbody tr").first().getByRole("button").last().click();
  await expect(page.locator(".unseen").filter({ hasText: "Chosen: f32[400000,12]" })).toBeAttached();
  await expect(page.locator("table.alive tr[aria-current]")).toHaveCount(1);
  await page.keyboard.press("Escape");
  await expect(page.locator(".detail")).toBeHidden();
  await expect(page.locator("table.alive tr[aria-current]")).toHaveCount(0);
  expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("f32[400000,12]");
});

test("an allocation in the picture is its row, its detail and its line in the text", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  const frame = page.getByRole("slider", { name: "Moment in the program's order" });
  // Under the pointer at the peak, from address 0 on.
  await page.locator("summary", { hasText: "The program’s text" }).click();
  await expect(page.locator(".lines")).toContainText(" = ");
  await frame.scrollIntoViewIfNeeded();
  const inside = (await frame.boundingBox())!;
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

/// Where the timeline is, and its picture, once it is drawn.
async function timeline(page: Page) {
  const frame = page.getByRole("slider", { name: "Moment in the program's order" });
  await frame.scrollIntoViewIfNeeded();
  const box = (await frame.boundingBox())!;
  const canvas = frame.locator("canvas").first();
  const picture = () => canvas.evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  const empty = await page.evaluate(() => document.createElement("canvas").toDataURL());
  await expect.poll(picture).not.toBe(empty);
  return { box, canvas, picture };
}

test("the wheel and a drag move through the program, and the page scrolls otherwise", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  const { canvas, picture } = await timeline(page);
  const whole = await picture();
  let box = (await canvas.boundingBox())!;
  await expect(async () => {
    // What is said above the chart may come later, and move it.
    box = (await canvas.boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + 100);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -120);
    await page.keyboard.up("Control");
    await expect.poll(picture, { timeout: 2000 }).not.toBe(whole);
  }).toPass();
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
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  const { box, picture } = await timeline(page);
  const whole = await picture();
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
  await open(page, "kv_decode_row_major.v5e.hlo", hlo("examples/kv_decode_row_major.v5e.hlo"));
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

/// Layers that keep an array each, all of one line, for the backward pass.
function layers(count: number): Buffer {
  const [wide, thin] = ["f32[512,8192]{1,0:T(8,128)}", "f32[512,1024]{1,0:T(8,128)}"];
  const line = (name: string, shape: string, from: string, path: string) => `  ${name} = ${shape} custom-call(${from}), custom_call_target="f", metadata={op_name="jit(step)/${path}/dot_general" source_file="net.py" source_line=7}`;
  const numbers = Array.from({ length: count }, (_, k) => k);
  const forward = numbers.flatMap((k) => [line(`k.${k}`, wide, `x.${k}`, `jvp(layer_${k})`), line(`x.${k + 1}`, thin, `k.${k}`, `jvp(layer_${k})`)]);
  const backward = [...numbers].reverse().map((k) => line(`g.${k}`, thin, `x.${k}, k.${k}, ${k === count - 1 ? `x.${count}` : `g.${k + 1}`}`, `transpose(jvp(layer_${k}))`));
  const text = ["HloModule jit_step, is_scheduled=true", "", `ENTRY main (x.0: f32[512,1024]) -> f32[512,1024] {`, `  x.0 = ${thin} parameter(0), metadata={op_name="x"}`, ...forward, ...backward, `  ROOT r = ${thin} add(g.0, g.0)`, "}"];
  return Buffer.from(text.join("\n"));
}

test("layers have colours of their own, and rows of several layers none of them", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "net.hlo", layers(4));
  const { picture } = await timeline(page);
  const swatch = () => page.locator("table.alive tbody tr", { hasText: "f32[512,8192]" }).locator("i").getAttribute("style");
  // One line holds everything, so that layers have the colours from the start.
  await expect(page.getByRole("button", { name: "By layer" })).toHaveAttribute("aria-pressed", "true");
  await expect(page.locator(".keys").last()).toContainText("layer_3");
  expect(await swatch()).toContain("--other");
  const byLayer = await picture();
  await page.getByRole("group", { name: "Colours" }).getByRole("button", { name: "By line" }).click();
  await expect.poll(picture).not.toBe(byLayer);
  expect(await swatch()).toContain("--tile-0");
  await accessible(page);
});

test("modules of operations' names, at any moment", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  const heading = page.getByRole("heading", { name: /At the peak/ });
  const total = await heading.textContent();
  await page.getByRole("button", { name: "By module" }).click();
  await expect(heading).toHaveText(total!);
  await expect(page.locator(".path")).toContainText("All");
  await page.locator(".area").first().click();
  await expect(page.locator(".detail, .path strong").filter({ hasNotText: /^All$/ }).first()).toBeVisible();
});

/// The table's rows, by the name in their fourth column: bytes as they are printed.
async function listed(page: Page): Promise<Record<string, string>> {
  const more = page.locator(".more");
  if (await more.isVisible()) await more.click();
  const cells = await page.locator("table.alive tbody tr").evaluateAll((rows) => rows.map((row) => [row.children[3]!.childNodes[[...row.children[3]!.childNodes].findIndex((node) => node.nodeName === "I") + 1]?.textContent ?? "", row.children[0]!.textContent!]));
  return Object.fromEntries(cells as [string, string][]);
}

const printed = (bytes: number) => {
  let [value, unit] = [bytes, 0];
  while (value >= 1024) [value, unit] = [value / 1024, unit + 1];
  return unit === 0 ? `${bytes} B` : `${value.toFixed(2)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
};

test("modules hold what the audit says, at every depth, with the mouse and the keys", async ({ quiet: page }) => {
  for (const [name, bytes] of [["net.hlo", layers(4)], ["lstm_train.v4.hlo.gz", hlo("examples/lstm_train.v4.hlo.gz")]] as const) {
    const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
    writeFileSync(join(folder, name), bytes);
    const report = JSON.parse(execFileSync(commandLine(), ["audit", name, "--format", "json", "--all"], { cwd: folder, encoding: "utf8", maxBuffer: 1 << 30 }));
    const modules = report.peak_modules as { module: string; bytes: number }[];
    const below = (before: string) => {
      const sums: Record<string, number> = {};
      for (const { module, bytes } of modules) {
        const part = module.startsWith(before) && module.slice(before.length).split("/")[0];
        if (part) sums[part] = (sums[part] ?? 0) + bytes;
      }
      return sums;
    };
    const whole = modules.reduce((sum, { bytes }) => sum + bytes, 0);
    expect(whole).toBe(report.memory_spaces[0].peak_live_bytes);
    await page.goto("./");
    await open(page, name, bytes);
    await page.getByRole("button", { name: "By module" }).click();
    const top = below("");
    expect(Object.keys(top).length).toBeGreaterThan(0);
    expect(await listed(page)).toMatchObject(Object.fromEntries(Object.entries(top).map(([module, bytes]) => [module, printed(bytes)])));
    // Enter goes into a module, as a click does.
    const into = Object.keys(top).find((module) => Object.keys(below(`${module}/`)).length > 0);
    if (!into) continue;
    await page.locator("table.alive tbody tr", { hasText: into }).first().getByRole("button").last().press("Enter");
    await expect(page.locator(".path strong")).toHaveText(into);
    expect(await listed(page)).toMatchObject(Object.fromEntries(Object.entries(below(`${into}/`)).map(([module, bytes]) => [module, printed(bytes)])));
    await page.locator(".path").getByRole("button", { name: "All" }).click();
    await page.locator("table.alive tbody tr", { hasText: into }).first().click();
    await expect(page.locator(".path strong")).toHaveText(into);
  }
});

/// A program that holds more than there is, each array of one line of a library.
function tooLarge(): Buffer {
  const text = layers(24).toString().replaceAll("f32[512,8192]", "f32[8192,32768]");
  return Buffer.from(text);
}

test("the verdict is first: what doesn't fit, by how much, with the limit in the picture, and what to do", async ({ quiet: page }) => {
  await page.goto("./");
  const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
  writeFileSync(join(folder, "net.v5e.hlo"), tooLarge());
  const told = spawnSync(commandLine(), ["audit", "net.v5e.hlo", "--tpu", "v5e"], { cwd: folder, encoding: "utf8" }).stdout;
  const [, holds] = /Holds (\S+ \S+) \(/.exec(told)!;
  const [, over] = /Does not fit 15.75 GiB of HBM: (\S+ \S+) too much/.exec(told)!;
  await open(page, "net.v5e.hlo", tooLarge());
  await expect(page.locator(".judgement.bad")).toHaveText(`Does not fit v5e: ${over} too much`);
  await expect(page.locator(".lead")).toContainText(`Holds ${holds}`);
  // The same number in the picture of the command line.
  spawnSync(commandLine(), ["audit", "net.v5e.hlo", "--tpu", "v5e", "-o", "net.svg"], { cwd: folder });
  expect(readFileSync(join(folder, "net.svg"), "utf8")).toContain(`${holds} at most`);
  // One without a name is of a TPU that is only assumed.
  await open(page, "net.hlo", tooLarge());
  await expect(page.locator(".judgement.bad")).toHaveText(`Does not fit v5e (assumed): ${over} too much`);
});

test("rows and legends name the library's line", async ({ quiet: page }) => {
  const frames = 'HloModule m, is_scheduled=true\n\nFileNames\n1 "/home/me/train.py"\n2 "/usr/lib/python3/site-packages/transformers/models/gpt2/modeling_flax_gpt2.py"\n\nFunctionNames\n1 "step"\n2 "__call__"\n\nFileLocations\n1 {file_name_id=1 function_name_id=1 line=134 end_line=134 column=1 end_column=2}\n2 {file_name_id=2 function_name_id=2 line=720 end_line=720 column=1 end_column=2}\n\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n\n';
  const text = `${frames}ENTRY e {\n  x = f32[512,1024]{1,0:T(8,128)} parameter(0)\n  y = f32[512,8192]{1,0:T(8,128)} custom-call(x), custom_call_target="f", metadata={op_name="jit(step)/h/dot" stack_frame_id=2}\n  ROOT z = f32[512,1024]{1,0:T(8,128)} custom-call(y), custom_call_target="g"\n}\n`;
  await page.goto("./");
  await open(page, "library.hlo", Buffer.from(text));
  const row = page.locator("table.alive tbody tr", { hasText: "f32[512,8192]" });
  await expect(row).toContainText("modeling_flax_gpt2.py:720");
  await expect(page.locator(".keys").last()).toContainText("modeling_flax_gpt2.py:720");
  await page.getByLabel("Filter the table").fill("line:720");
  await expect(row).toBeVisible();
  await row.getByRole("button").last().click();
  await expect(page.locator(".detail")).toContainText("train.py:134 step");
  await page.locator(".detail summary", { hasText: "Call stack (2)" }).click();
  await expect(page.locator(".stack li")).toHaveText(["modeling_flax_gpt2.py:720 __call__", "train.py:134 step"]);
});

test("the chart stays beside what is chosen, answers hovering, zooms to the peak, and sums a part", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "net.hlo", layers(40));
  const { box, picture } = await timeline(page);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.45);
  await expect(page.locator(".tip")).toContainText(/step \d+: .* in use, .* without padding/);
  const whole = await picture();
  await page.getByRole("button", { name: "To the peak" }).click();
  await expect(page.locator(".minimap")).toBeVisible();
  await expect.poll(picture).not.toBe(whole);
  const near = await picture();
  await page.getByRole("slider", { name: "Moment in the program's order" }).focus();
  await page.keyboard.press("s");
  await expect.poll(picture).not.toBe(near);
  const now = (await page.getByRole("slider", { name: "Moment in the program's order" }).boundingBox())!;
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

test("kernels: what lies between them and their neighbours, as the audit says", async ({ quiet: page }) => {
  let copied = 0;
  for (const name of ["pallas_kernel.v5e.hlo", "pallas_prefetch_alias.v7x.hlo"]) {
    const report = JSON.parse(execFileSync(commandLine(), ["audit", name, "--format", "json"], { cwd: `${root}/testing/programs`, encoding: "utf8", maxBuffer: 1 << 30 }));
    type Side = { copied_bytes: number; shape: string };
    const kernels = report.kernels as { used_bytes: number | null; operands: Side[]; results: Side[] }[];
    const arrays = kernels.flatMap(({ operands, results }) => [...operands, ...results]).filter(({ copied_bytes }) => copied_bytes > 0);
    copied += arrays.length;
    await page.goto("./");
    await open(page, name, hlo(`testing/programs/${name}`));
    await expect(page.locator(".lead")).toContainText("Holds");
    await expect(page.locator("details", { hasText: "VMEM of kernels" })).toHaveCount(kernels.some(({ used_bytes }) => used_bytes !== null) ? 1 : 0);
    const table = page.getByRole("region", { name: "Table of copies at kernels" });
    await expect(table).toHaveCount(arrays.length ? 1 : 0);
    if (arrays.length) await expect(table.locator("tbody tr").first()).toContainText(printed(Math.max(...arrays.map(({ copied_bytes }) => copied_bytes))));
  }
  console.log(`${copied} arrays are copied at kernels`);
});

test("an axis of time, where the text has cycle counts", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  const { picture } = await timeline(page);
  const order = await picture();
  await page.getByRole("button", { name: "Estimated time" }).click();
  await expect.poll(picture).not.toBe(order);
  await expect(page.locator(".keys").last()).toContainText("time only bounded");
  await page.reload();
  await page.waitForTimeout(300);
  await open(page, "lstm.hlo", layers(4));
  await expect(page.locator(".lead")).toContainText("Holds");
  await expect(page.getByRole("button", { name: "Estimated time" })).toHaveCount(0);
});

test("several files stay as tabs", async ({ quiet: page }) => {
  await page.goto("./");
  const message = readFileSync(`${root}/crates/tilewise-oom/tests/data/public/smem.txt`);
  await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles([
    { name: "a.hlo", mimeType: "", buffer: hlo(GNN) },
    { name: "b.txt", mimeType: "", buffer: message },
  ]);
  await expect(page.getByRole("group", { name: "Files" }).getByRole("button")).toHaveCount(2);
  for (const [name, what] of [["b.txt", "article.message"], ["a.hlo", "article.program"], ["b.txt", "article.message"]] as const) {
    await page.getByRole("group", { name: "Files" }).getByRole("button", { name }).click();
    await expect(page.locator(what)).toBeVisible();
  }
});

/// The example with half as many edges: what is as long as they are is half as large.
const half = () => Buffer.from(hlo(GNN).toString().replaceAll("400000", "200000").replaceAll("400384", "200704"));

test("two programs: the peak's change by owner, both over their order, and copies", async ({ quiet: page }) => {
  await page.goto("./");
  await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles([
    { name: "after.hlo", mimeType: "", buffer: half() },
    { name: "before.hlo", mimeType: "", buffer: hlo(GNN) },
  ]);
  await expect(page.locator("article.program")).toBeVisible();
  await page.getByRole("button", { name: "Compare" }).click();
  const lead = page.locator("article.compared .lead");
  await expect(lead).toContainText("→ 311.37 MiB of HBM");
  const first = page.getByRole("region", { name: "At each peak, by owner" }).first().locator("tbody tr").first();
  await expect(first).toContainText("+97.66 MiB");
  await page.getByRole("button", { name: "Swap" }).click();
  await expect(lead).toContainText("311.37 MiB →");
  await expect(first).toContainText("−97.66 MiB");
  await page.reload();
  await expect(lead).toContainText("311.37 MiB →");
  await page.goBack();
  await expect(lead).toContainText("→ 311.37 MiB of HBM");
  await accessible(page);
});

test("two programs as a report in one file: what the page shows of them", async ({ quiet: page, context }) => {
  const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
  writeFileSync(join(folder, "before.hlo"), hlo(GNN));
  writeFileSync(join(folder, "after.hlo"), half());
  execFileSync(commandLine(), ["audit", "after.hlo", "--against", join(folder, "before.hlo"), "-o", "change.html"], { cwd: folder, stdio: "ignore" });
  await page.goto("./");
  await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles(["before.hlo", "after.hlo"].map((name) => join(folder, name)));
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("button", { name: "Swap" }).click();
  const tables = page.locator("article.compared section:has(table)");
  await expect(page.locator(".lead")).toContainText("311.37 MiB →");
  const shown = await tables.allTextContents();
  expect(shown.length).toBeGreaterThan(2);
  await context.setOffline(true);
  await page.goto(`file://${folder}/change.html`);
  await expect(page.locator(".lead")).toContainText("311.37 MiB →");
  expect(await tables.allTextContents()).toEqual(shown);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("before.hlo → after.hlo");
  await accessible(page);
});

test("print, and forced colours", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "lstm_train.v4.hlo.gz", hlo("examples/lstm_train.v4.hlo.gz"));
  await expect(page.locator(".lead")).toContainText("397.02 MiB");
  await page.emulateMedia({ media: "print" });
  await expect(page.locator(".top")).toBeHidden();
  await expect(page.locator(".lead")).toBeVisible();
  // What a table leaves out is said on paper, too.
  await expect(page.locator(".more")).toHaveText(/^\d+ more$/);
  await page.emulateMedia({ media: "screen", forcedColors: "active" });
  expect(await page.locator(".budget span").first().evaluate((part) => getComputedStyle(part).backgroundColor)).not.toBe("rgb(255, 255, 255)");
});

test("a TPU that it must fit", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "gnn_large.v5e.hlo", hlo(GNN));
  // The file is named after one.
  await expect(page.getByLabel("The TPU it must fit")).toHaveValue("tpu:v5e");
  await expect(page.locator(".judgement.good")).toHaveText("Fits v5e: 15.45 GiB left");
  await page.getByLabel("The TPU it must fit").selectOption("tpu:v6e");
  await expect(page.locator(".judgement")).toHaveText("Fits v6e: 30.94 GiB left");
});

test("programs of GPUs and CPUs, and one whose text doesn't tell", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "attention.h100.hlo", hlo("examples/machines/attention.h100.hlo"));
  await expect(page.locator(".lead")).toContainText("Holds 28.00 MiB of GPU memory at most");
  const machine = page.getByLabel("The machine it is compiled for");
  await machine.selectOption("gpu:h100");
  await expect(page.locator(".judgement")).toHaveText("Fits h100: 59.30 GiB left");
  await page.reload();
  await expect(page.locator(".judgement")).toHaveText("Fits h100: 59.30 GiB left");
  await accessible(page);
  await open(page, "attention.cpu.hlo", hlo("examples/machines/attention.cpu.hlo"));
  await expect(page.locator(".lead")).toContainText("Holds 54.00 MiB of memory at most");
  const text = "HloModule m, is_scheduled=true\nENTRY e {\n  p = f32[100]{0} parameter(0)\n  a = f32[100]{0} add(p, p)\n  ROOT b = f32[100]{0} multiply(a, a)\n}\n";
  await open(page, "untold.hlo", Buffer.from(text));
  const warning = page.locator(".warning", { hasText: "does not show whether a GPU or a CPU is to run it" });
  await expect(warning).toBeVisible();
  await machine.selectOption("gpu");
  await expect(page.locator(".lead")).toContainText("of GPU memory");
  await expect(warning).toBeHidden();
});

test("the page's audit is the command line's, byte for byte", async ({ quiet: page }) => {
  test.setTimeout(600_000);
  await page.goto("./");
  const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
  let compared = 0;
  for (const { name, bytes } of programs()) {
    writeFileSync(join(folder, name), bytes);
    let expected: string;
    try {
      expected = execFileSync(commandLine(), ["audit", name, "--format", "json", "--all"], { cwd: folder, encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] });
    } catch {
      continue;
    }
    await open(page, name, bytes);
    await expect(page.getByRole("heading", { level: 1 })).toContainText(name, { timeout: 60_000 });
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save JSON" }).click();
    const saved = readFileSync(await (await download).path(), "utf8");
    expect(saved === expected, `${name}: ${saved.slice(0, 200)} … ${expected.slice(0, 200)}`).toBe(true);
    compared += 1;
  }
  expect(compared).toBeGreaterThan(6);
  console.log(`${compared} programs have equal audits`);
});

test("gzip, protos, cut texts and nonsense, by content", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "whatever.bin", gzipSync(hlo(GNN)));
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  const proto = programs().find(({ name }) => /\.pb(\.gz)?$/.test(name))!;
  await open(page, "a.dat", proto.name.endsWith(".gz") ? gunzipSync(proto.bytes) : proto.bytes);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("a.dat");
  await open(page, "cut.hlo", hlo(GNN).subarray(0, 12_000));
  await expect(page.getByRole("alert")).toContainText("cut off");
  await open(page, "noise.bin", Buffer.from([0, 1, 2, 255, 254, 9, 9, 9]));
  await expect(page.getByRole("alert")).toContainText("nothing that is known");
});

/// Opens a folder, whose audit is the command line's. What the page says it took, and what the command line does.
async function openFolder(page: Page, folder: string): Promise<{ status: string; stderr: string }> {
  await page.goto("./");
  const name = basename(folder);
  const { stdout, stderr } = spawnSync(commandLine(), ["audit", name, "--format", "json", "--all"], { cwd: dirname(folder), encoding: "utf8" });
  await page.locator("input[webkitdirectory]").setInputFiles(folder);
  await expect(page.getByRole("heading", { level: 1 })).toContainText(`${name}/`);
  const status = (await page.getByRole("status").textContent())!;
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save JSON" }).click();
  expect(readFileSync(await (await download).path(), "utf8")).toBe(stdout);
  return { status, stderr };
}

test("a profile: its programs by name", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "train.xplane.pb", hlo("examples/train.xplane.pb"));
  await expect(page.locator(".lead")).toContainText("Holds");
  const which = page.getByLabel("Program", { exact: true });
  const names = await which.locator("option").allTextContents();
  expect(names.length).toBeGreaterThan(1);
  const name = (at: number) => names.at(at)!.split(": ")[1]!.split(",")[0]!;
  // The largest is first.
  await expect(page.getByRole("heading", { level: 1 })).toContainText(name(0));
  await which.selectOption({ index: names.length - 1 });
  await expect(page.getByRole("heading", { level: 1 })).toContainText(name(-1));
  await page.waitForTimeout(600);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toContainText(name(-1));
  await accessible(page);
});

test("a dump's folder: what the command line takes and leaves", async ({ quiet: page }) => {
  const { status, stderr } = await openFolder(page, DUMP);
  const [, program, plan, left] = /\n {2}(\S+), with the plan in (\S+)\n {2}left: (.*)\n/.exec(stderr)!;
  expect(status).toBe(`Took dump/${program}. Left: ${left}. The compiler’s own plan is dump/${plan}.`);
});

test("of a folder's plans the first that is of the program, or none", async ({ quiet: page }) => {
  const stem = "module_0054.jit_f.cl_1003875606.after_optimizations";
  const assignment = readFileSync(`${DUMP}/${stem}-buffer-assignment.txt`, "utf8");
  const none = mkdtempSync(join(tmpdir(), "tilewise-"));
  writeFileSync(join(none, "a.hlo"), hlo(GNN));
  writeFileSync(join(none, "a-buffer-assignment.txt"), assignment);
  expect((await openFolder(page, none)).status).toContain("No file there has the compiler’s own plan of it.");

  // The text is of another program; the proto beside the program's text has its plan.
  const second = mkdtempSync(join(tmpdir(), "tilewise-"));
  for (const end of [".txt", ".hlo.pb"]) cpSync(`${DUMP}/${stem}${end}`, join(second, stem + end));
  writeFileSync(join(second, `${stem}-buffer-assignment.txt`), assignment.replaceAll(/(value: <\d+ )/g, "$1of_another."));
  expect((await openFolder(page, second)).status).toContain(`The compiler’s own plan is ${basename(second)}/${stem}.hlo.pb.`);
});

test("pasted HLO, and its address", async ({ quiet: page, context }) => {
  await page.goto("./");
  await page.evaluate((text) => navigator.clipboard.writeText(text), hlo(GNN).toString());
  await page.locator("main").click({ position: { x: 2, y: 2 } });
  await page.keyboard.press("ControlOrMeta+v");
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  const second = await context.newPage();
  await second.goto(page.url());
  await expect(second.locator(".lead")).toContainText("311.37 MiB");
  await page.goBack();
  await expect(page.locator(".gallery").first()).toBeVisible();
});

test("a report in one file opens from disk, offline", async ({ quiet: page, context }) => {
  const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
  execFileSync(commandLine(), ["audit", `${root}/${GNN}`, "-o", join(folder, "report.html")], { stdio: "ignore" });
  await context.setOffline(true);
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(`file://${folder}/report.html`);
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  const { picture } = await timeline(page);
  const light = await picture();
  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(picture).not.toBe(light);
  await expect(page.getByRole("slider")).toHaveAttribute("aria-valuenow", "22");
  await page.locator("table.alive tbody tr").first().getByRole("button").last().click();
  await expect(page.locator(".detail svg")).toBeVisible();
  await accessible(page);
});

test("a report: other memories, layouts and the text are inside, and what isn't is said", async ({ quiet: page }) => {
  const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
  execFileSync(commandLine(), ["audit", `${root}/${GNN}`, "-o", join(folder, "report.html")], { stdio: "ignore" });
  await page.goto(`file://${folder}/report.html`);
  await page.locator("summary", { hasText: "The program’s text" }).click();
  await expect(page.locator(".lines [aria-current]")).toContainText("fusion");
  await page.getByLabel("Find in the program's text").fill("ENTRY %");
  await page.getByLabel("Find in the program's text").press("Enter");
  await expect(page.locator(".lines [aria-current]")).toContainText("ENTRY");
  await page.getByRole("button", { name: "Light or dark" }).click();
  expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  await accessible(page);
});

test("a report's JSON, without its program", async ({ quiet: page }) => {
  await page.goto("./");
  const json = execFileSync(commandLine(), ["audit", `${root}/${GNN}`, "--format", "json"]);
  await open(page, "report.json", json);
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  await expect(page.getByRole("status")).toContainText("without its program");
});

test("a phone's width", async ({ quiet: page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("./");
  // Names have no place to break.
  await open(page, "gnn_large.v5e.hlo", Buffer.from(hlo(GNN).toString().replaceAll("jit(f)/dot_general", `jit(f)/${"dot".repeat(30)}`)));
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  await expect(page.locator(".story")).toContainText("dotdot");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});
