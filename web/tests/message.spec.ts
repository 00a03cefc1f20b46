import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { accessible, commandLine, expect, open, root, test } from "./page";

const MESSAGES = `${root}/crates/tilewise-oom/tests/data`;

async function paste(page: import("@playwright/test").Page, text: string): Promise<void> {
  await page.getByLabel("A shape, an out-of-memory message or HLO text").fill(text);
}

test("from a pasted message to its cause", async ({ quiet: page }) => {
  await page.goto("./");
  await paste(page, readFileSync(`${MESSAGES}/gnn_edges_f32.txt`, "utf8"));
  await expect(page.locator(".lead")).toContainText("Padding is the cause");
  await expect(page.locator(".budget").first()).toBeVisible();
  await expect(page.locator("tbody tr").first()).toContainText("f32[");
  await page.locator("tbody tr button").first().click();
  await expect(page.locator(".picture svg")).toBeVisible();
  await accessible(page);
});

test("a log in gzip", async ({ quiet: page }) => {
  await page.goto("./");
  await open(page, "log.gz", gzipSync(readFileSync(`${MESSAGES}/gnn_edges_f32.txt`)));
  await expect(page.locator(".lead")).toContainText("Padding is the cause");
});

test("verdicts are the command line's", async ({ quiet: page }) => {
  await page.goto("./");
  for (const name of readdirSync(MESSAGES).filter((name) => name.endsWith(".txt"))) {
    const explained = JSON.parse(execFileSync(commandLine(), ["explain", `${MESSAGES}/${name}`, "--format", "json"], { encoding: "utf8" }));
    await paste(page, readFileSync(`${MESSAGES}/${name}`, "utf8"));
    await expect(page.locator("details pre").last()).toContainText("RESOURCE_EXHAUSTED");
    await expect(page.locator("article.message")).toHaveAttribute("data-verdict", explained.verdict);
    await expect(page.locator(".advice li")).toHaveCount(explained.advice.length);
  }
});

test("a message in an address", async ({ quiet: page, context }) => {
  await page.goto("./");
  await paste(page, readFileSync(`${MESSAGES}/kv_cache_one_head.txt`, "utf8"));
  await expect(page.locator("article.message")).toBeVisible();
  await expect(page).toHaveURL(/#z=/);
  const second = await context.newPage();
  await second.goto(page.url());
  await expect(second.locator("article.message")).toBeVisible();
});
