// Two programs, before and after a change.

import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, commandLine, expect, hlo, root, test } from "./page";
import { GNN, half } from "./programs";

test("two programs: the peak's change by owner, both over their order, and copies", async ({ quiet: page }) => {
  await page.goto("./");
  await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles([
    { name: "after.hlo", mimeType: "", buffer: half() },
    { name: "before.hlo", mimeType: "", buffer: hlo(GNN) },
  ]);
  await expect(page.locator("article.program")).toBeVisible();
  await page.getByRole("button", { name: "Compare" }).click();
  const lead = page.locator("article.compared .lead");
  // "before" comes first, in whichever order the files were chosen.
  await expect(lead).toContainText("311.37 MiB →");
  const first = page.getByRole("region", { name: "At each peak, by owner" }).first().locator("tbody tr").first();
  await expect(first).toContainText("−97.66 MiB");
  await page.getByRole("button", { name: "Swap" }).click();
  await expect(lead).toContainText("→ 311.37 MiB of HBM");
  await expect(first).toContainText("+97.66 MiB");
  await page.getByRole("button", { name: "Swap" }).click();
  await expect(lead).toContainText("311.37 MiB →");
  const gone = page.getByRole("region", { name: "Buffers that only the first has" }).first();
  await gone.getByRole("button", { name: /^[a-z]+\d+\[/ }).first().click();
  await expect(gone.locator(".picture svg")).toBeVisible();
  const count = await gone.locator("tbody tr").count();
  const more = gone.getByRole("button", { name: / more$/ });
  if (await more.isVisible()) {
    const [hidden] = (await more.textContent())!.split(" ");
    await more.click();
    await expect(gone.locator("tbody tr")).toHaveCount(count + Number(hidden));
  }
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

test("programs of a server together: what frees memory, each of them, and what is held once", async ({ quiet: page }) => {
  const names = ["large", "small", "undonated"].map((name) => `${name}.v6e.hlo.gz`);
  await page.goto("./");
  await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles(names.map((name) => `${root}/examples/server/${name}`));
  await page.getByRole("group", { name: "Files" }).getByRole("button", { name: "Together" }).click();
  const article = page.locator("article.together");
  await expect(article.getByRole("heading", { level: 1 })).toContainText("3 programs together hold at least 434.54 MiB of 31.24 GiB of HBM");
  await expect(article.locator("svg")).toContainText("undonated: 147.25 MiB");
  const printed = execFileSync(commandLine(), ["audit", "--format", "json", "--together", ...names, "--tpu", "v6e"], { cwd: `${root}/examples/server`, encoding: "utf8" });
  const { programs, residents, options } = JSON.parse(printed).together as { programs: { name: string }[]; residents: { shape: string }[]; options: { sentence: string }[] };
  await expect(article.locator("li")).toContainText(options.map(({ sentence }) => sentence.replaceAll("`", "")));
  const [first, held] = [article.getByRole("table").nth(0), article.getByRole("table").nth(1)];
  await expect(first.locator("td:last-child")).toHaveText(programs.map(({ name }) => name));
  await expect(held.locator("td:nth-child(3)")).toHaveText(residents.slice(0, 12).map(({ shape }) => shape));
  await accessible(page);
});
