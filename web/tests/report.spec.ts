// Reports of the command line: in one file, and as JSON.

import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, commandLine, expect, open, root, test, timeline } from "./page";
import { GNN } from "./programs";

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
