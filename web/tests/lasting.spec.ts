// Lasting state: long pasted texts, files through the history, the page without a network, memory over many loads.

import type { Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { accessible, commandLine, expect, hlo, open, openProgram, root, test } from "./page";
import { DUMP, GNN } from "./programs";

const box = "A shape, an out-of-memory message or HLO text";

/// How a program is looked at, as the address says.
function addressed(page: Page): unknown {
  const packed = new URL(page.url()).hash.replace("#z=", "");
  return JSON.parse(inflateRawSync(Buffer.from(packed, "base64url")).toString()).shown;
}

/// Pastes into the box as Ctrl+V does.
const paste = (page: Page, text: string) =>
  page.getByLabel(box).evaluate((box, text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    box.dispatchEvent(event);
    return event.defaultPrevented;
  }, text);

test("a long log that is pasted into the box is shown cut, and explained", async ({ quiet: page }) => {
  await page.goto("./");
  const message = readFileSync(`${root}/crates/tilewise-oom/tests/data/gnn_edges_f32.txt`, "utf8");
  const log = "step 1, loss 2.3\n".repeat(400_000) + message;
  expect(await paste(page, log)).toBe(true);
  await expect(page.locator(".lead")).toContainText("Padding is the cause");
  const shown = await page.getByLabel(box).inputValue();
  expect(shown.length).toBeLessThan(400);
  expect(shown).toContain("more characters");
  // The box keeps a short text.
  expect(await paste(page, "f32[3,5]")).toBe(true);
  await expect(page.getByLabel(box)).toHaveValue("f32[3,5]");
  await expect(page.locator("article.shape")).toBeVisible();
  expect(await paste(page, "f32[4,8]")).toBe(false);
});

test("Back keeps the tabs and Compare, Reload the tabs", async ({ quiet: page }) => {
  await page.goto("./");
  const half = Buffer.from(hlo(GNN).toString().replaceAll("400000", "200000").replaceAll("400384", "200704"));
  await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles([
    { name: "after.hlo", mimeType: "", buffer: half },
    { name: "before.hlo", mimeType: "", buffer: hlo(GNN) },
  ]);
  const tabs = page.getByRole("group", { name: "Files" }).getByRole("button");
  await expect(tabs).toHaveText(["before.hlo", "after.hlo", "Compare", "Together"]);
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  await tabs.nth(1).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("after.hlo");
  await page.goBack();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("before.hlo");
  await expect(tabs).toHaveCount(4);
  await expect(tabs.first()).toHaveAttribute("aria-pressed", "true");
  await tabs.nth(2).click();
  await expect(page.locator("article.compared")).toBeVisible();
  await page.reload();
  await expect(page.locator("article.compared")).toBeVisible();
  await expect(tabs.nth(2)).toHaveAttribute("aria-pressed", "true");
});

test("an address has what is looked at: moment, rows and filter", async ({ quiet: page, context }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const slider = page.getByRole("slider", { name: "Moment in the program's order" });
  await expect(slider).toHaveAttribute("aria-valuenow", "22");
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("button", { name: "By line" }).last().click();
  await page.getByLabel("Filter the table").fill("model");
  await expect.poll(() => addressed(page)).toMatchObject({ moment: 20, rows: "lines", filter: "model" });
  const second = await context.newPage();
  await second.goto(page.url());
  for (const shown of [second, page]) {
    await shown.reload();
    await expect(shown.getByRole("heading", { name: /At step 21:/ })).toBeVisible();
    await expect(shown.getByRole("button", { name: "By line" }).last()).toHaveAttribute("aria-pressed", "true");
    await expect(shown.getByLabel("Filter the table")).toHaveValue("model");
  }
});

test("a file that is opened while an address is read stays", async ({ quiet: page }) => {
  await page.goto("./");
  // Too large for a link, so that the browser is asked for it.
  await openProgram(page, "large.hlo", Buffer.concat([hlo(GNN), Buffer.from(`// ${"x".repeat(1000)}\n`.repeat(300))]));
  await expect(page).toHaveURL(/#kept=/);
  await page.reload({ waitUntil: "commit" });
  await openProgram(page, "newer.hlo", hlo(GNN));
  await expect(page.getByRole("heading", { level: 1 })).toContainText("newer.hlo");
});

test("Try again keeps a program that was opened, and the same file opens twice", async ({ page }) => {
  let isDown = true;
  await page.route("**/*.wasm", (route) => (isDown ? route.abort() : route.continue()));
  await page.goto("./");
  const large = Buffer.concat([hlo(GNN), Buffer.from(`// ${"x".repeat(1000)}\n`.repeat(300))]);
  // Only the core can find out its kind.
  await open(page, "large.hlo", large);
  await expect(page.getByRole("alert")).toContainText("could not load");
  isDown = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  await page.getByRole("link", { name: "tilewise" }).click();
  await expect(page.locator(".gallery").first()).toBeVisible();
  const file = page.locator('input[type="file"]:not([webkitdirectory])');
  expect(await file.evaluate((file: HTMLInputElement) => (file.addEventListener("click", (event) => event.preventDefault(), { once: true }), file.click(), file.value))).toBe("");
});

test.describe("with a service worker", () => {
  test.use({ serviceWorkers: "allow" });
  test("without a network after the page was at rest: every part of it, and after a reload", async ({ page, context }) => {
    await page.goto("./");
    await expect.poll(() => page.evaluate(() => navigator.serviceWorker.controller?.state), { timeout: 60_000 }).toBe("activated");
    await context.setOffline(true);
    await open(page, "gnn_large.v5e.hlo", hlo(GNN));
    await expect(page.locator(".lead")).toContainText("311.37 MiB");
    await page.reload();
    await expect(page.locator(".lead")).toContainText("311.37 MiB");
    await paste(page, readFileSync(`${root}/crates/tilewise-oom/tests/data/smem_prefetch.txt`, "utf8"));
    await page.getByLabel(box).fill("f32[4,8]{1,0:T(2,4)(2,1)}");
    await expect(page.locator(".facts")).toContainText("128 B");
  });
});

test("thirty loads leave no elements behind", async ({ quiet: page, context }) => {
  test.setTimeout(240_000);
  await page.goto("./");
  const devtools = await context.newCDPSession(page);
  await devtools.send("Performance.enable");
  const load = async () => {
    await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
    await page.getByRole("link", { name: "tilewise" }).click();
    await expect(page.locator(".gallery").first()).toBeVisible();
  };
  const counted = async () => {
    for (let k = 0; k < 3; k++) {
      await page.waitForTimeout(200);
      await devtools.send("HeapProfiler.collectGarbage");
    }
    const { metrics } = await devtools.send("Performance.getMetrics");
    const of = (name: string) => metrics.find((metric) => metric.name === name)!.value;
    return { nodes: of("Nodes"), listeners: of("JSEventListeners") };
  };
  for (let k = 0; k < 3; k++) await load();
  const before = await counted();
  for (let k = 0; k < 30; k++) await load();
  const after = await counted();
  console.log(`nodes ${before.nodes} → ${after.nodes}, listeners ${before.listeners} → ${after.listeners}`);
  expect(after.nodes).toBeLessThan(before.nodes * 1.1);
  expect(after.listeners).toBeLessThan(before.listeners * 1.1);
});

test("addresses that nobody made by the page are damaged links", async ({ quiet: page }) => {
  for (const state of [{ view: "program", name: {}, text: {} }, { view: "shape" }, { view: "message", text: 5 }, { view: "program", name: "a", text: "b", shown: { moment: -1 } }, null]) {
    const packed = deflateRawSync(JSON.stringify(state)).toString("base64url");
    await page.goto(`./#z=${packed}`);
    await page.reload();
    await expect(page.getByRole("alert")).toContainText("damaged");
  }
});

test("a compiler's plan alone, and our own report of one file, are read", async ({ quiet: page }) => {
  await page.goto("./");
  const name = "module_0054.jit_f.cl_1003875606.after_optimizations-buffer-assignment.txt";
  await open(page, name, readFileSync(`${DUMP}/${name}`));
  await expect(page.getByRole("heading", { level: 1 })).toContainText("The compiler’s own plan");
  const printed = JSON.parse(execFileSync(commandLine(), ["audit", name, "--format", "json"], { cwd: DUMP, encoding: "utf8" }));
  await expect(page.getByRole("region", { name: "Table of memories" }).locator("tbody tr")).toHaveCount(printed.memory_spaces.length);
  await accessible(page);
  const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
  execFileSync(commandLine(), ["audit", `${root}/${GNN}`, "-o", join(folder, "report.html")], { stdio: "ignore" });
  await open(page, "report.html", readFileSync(join(folder, "report.html")));
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  await expect(page.getByRole("slider")).toHaveAttribute("aria-valuenow", "22");
});

test("little motion where it is asked for", async ({ quiet: page }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.goto("./");
  await page.evaluate(() => {
    const scroll = Element.prototype.scrollIntoView;
    Element.prototype.scrollIntoView = function (options) {
      (window as unknown as { behaviors: unknown[] }).behaviors = [...((window as unknown as { behaviors?: unknown[] }).behaviors ?? []), (options as ScrollIntoViewOptions)?.behavior];
      return scroll.call(this, options);
    };
  });
  await page.getByLabel(box).fill(readFileSync(`${root}/crates/tilewise-oom/tests/data/gnn_edges_f32.txt`, "utf8"));
  await page.locator("tbody tr button").first().click();
  await expect.poll(() => page.evaluate(() => (window as unknown as { behaviors?: unknown[] }).behaviors)).toEqual(["auto"]);
});
