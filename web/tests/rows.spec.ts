// Rows alive at a moment: arrays, chosen rows, and modules.

import type { Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, commandLine, expect, hlo, openProgram, printed, root, test } from "./page";
import { GNN, layers } from "./programs";

test("a row shows its layout and its fix", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  await page.locator("table.alive tbody tr").first().getByRole("button").last().click();
  const detail = page.locator(".detail");
  await expect(detail).toContainText("f32[400000,12]{1,0:T(8,128)}");
  await expect(detail.getByRole("img", { name: /f32\[400000,12\]/ })).toBeVisible();
  await expect(detail).toContainText("padding");
  // Where it fits, savings are optional.
  await page.locator(".advice summary").click();
  await page.locator(".advice li button.link").first().click();
  await expect(detail.locator(".fix")).toContainText("→ 45.90 MiB");
  await page.getByRole("button", { name: "By line" }).click();
  await expect(page.locator("table.alive tbody tr").first()).toContainText("model.py:439");
});

test("rows: filtered, sorted, opened by line, by keyboard", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const rows = page.locator("table.alive tbody tr");
  await expect(rows.first()).toBeVisible();
  await page.getByLabel("Filter the table").fill("role:argument");
  await expect(rows.filter({ hasNotText: "argument" })).toHaveCount(0);
  await page.getByLabel("Filter the table").fill("shape:bf16[400000,12] line:model");
  await expect(rows).toHaveCount(1);
  await page.getByLabel("Filter the table").fill("");
  await page.getByRole("columnheader", { name: "padding" }).getByRole("button").click();
  await expect(page.getByRole("columnheader", { name: "padding" })).toHaveAttribute("aria-sort", "descending");
  const [first, second] = [rows.nth(0).getByRole("button").last(), rows.nth(1).getByRole("button").last()];
  await first.focus();
  await page.keyboard.press("ArrowDown");
  await expect(second).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect(first).toBeFocused();
  await page.getByRole("button", { name: "By line" }).last().click();
  const opens = page.locator("table.alive .opens").first();
  const before = await rows.count();
  await opens.click();
  await expect.poll(() => rows.count()).toBeGreaterThan(before);
  await accessible(page);
});

test("a filter asks for sizes, element types and moments", async ({ quiet: page }) => {
  const report = JSON.parse(execFileSync(commandLine(), ["audit", GNN, "--format", "json"], { cwd: root, encoding: "utf8" }));
  type Buffer = { shape: string; bytes: number; role: string };
  const alive = (report.memory_spaces[0].peak_buffers as Buffer[]).filter(({ role }) => ["temporary", "table"].includes(role));
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const filter = page.getByLabel("Filter the table");
  const rows = page.locator("table.alive tbody tr");
  const shapes = async () => (await rows.locator("code").allTextContents()).sort();
  const large = alive.filter(({ bytes }) => bytes > 20 * 2 ** 20);
  expect(large.length).toBeGreaterThan(0);
  expect(large.length).toBeLessThan(alive.length);
  await filter.fill("role:temporary size>20MiB alive:peak");
  await expect.poll(shapes).toEqual(large.map(({ shape }) => shape).sort());
  await filter.fill("role:temporary size<=20MiB alive:peak");
  await expect.poll(shapes).toEqual(alive.filter(({ bytes }) => bytes <= 20 * 2 ** 20).map(({ shape }) => shape).sort());
  await filter.fill("dtype:bf16 alive:peak");
  await expect(rows.first()).toContainText("bf16[");
  await expect(rows.filter({ hasNotText: "bf16[" })).toHaveCount(0);
  // Half a question leaves out nothing.
  await filter.fill("size>");
  await expect(rows.first()).toBeVisible();
});

test("around an array is what it is made from and what reads it", async ({ quiet: page }) => {
  const text = hlo(GNN).toString();
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  await page.locator("table.alive tbody tr", { hasText: "f32[400000,12]" }).first().getByRole("button").last().click();
  const graph = page.getByRole("group", { name: "Instructions around it" });
  const here = graph.locator("[aria-current]");
  const name = (await here.locator("b").textContent())!;
  // The text says what it reads.
  const line = text.split("\n").find((line) => new RegExp(`^\\s*(ROOT )?%?${name.replaceAll(".", "\\.")} = `).test(line))!;
  const operands = [...line.slice(line.indexOf("(", line.indexOf(" = ")), line.indexOf("), ")).matchAll(/%([\w.-]+)/g)].map(([, operand]) => operand!);
  expect(operands.length).toBeGreaterThan(0);
  for (const operand of operands) await expect(graph.locator("b").getByText(operand, { exact: true })).toBeVisible();
  // One of them that is chosen takes its place.
  const other = graph.locator(".node:not(.here)").last();
  const next = (await other.locator("b").textContent())!;
  await other.click();
  await expect(page.locator(".detail, .lines [aria-current]").filter({ hasText: next }).first()).toBeVisible();
  await accessible(page);
});

test("a row that is chosen is announced, marked, and closed by Escape", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  await page.locator("table.alive tbody tr").first().getByRole("button").last().click();
  await expect(page.locator(".unseen").filter({ hasText: "Chosen: f32[400000,12]" })).toBeAttached();
  await expect(page.locator("table.alive tr[aria-current]")).toHaveCount(1);
  await page.keyboard.press("Escape");
  await expect(page.locator(".detail")).toBeHidden();
  await expect(page.locator("table.alive tr[aria-current]")).toHaveCount(0);
  await expect(page.locator(":focus")).toContainText("f32[400000,12]");
});

/// The table's rows, by the name in their fourth column: bytes as they are printed.
async function listed(page: Page): Promise<Record<string, string>> {
  const more = page.locator(".more");
  if (await more.isVisible()) await more.click();
  const cells = await page.locator("table.alive tbody tr").evaluateAll((rows) => rows.map((row) => [row.children[3]!.childNodes[[...row.children[3]!.childNodes].findIndex((node) => node.nodeName === "I") + 1]?.textContent ?? "", row.children[0]!.textContent!]));
  return Object.fromEntries(cells as [string, string][]);
}

test("modules of operations' names, at any moment", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const heading = page.getByRole("heading", { name: /At the peak/ });
  const total = await heading.textContent();
  await page.getByRole("button", { name: "By module" }).click();
  await expect(heading).toHaveText(total!);
  await expect(page.locator(".path")).toContainText("All");
  await page.locator(".area").first().click();
  await expect(page.locator(".detail, .path strong").filter({ hasNotText: /^All$/ }).first()).toBeVisible();
});

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
    await openProgram(page, name, bytes);
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
