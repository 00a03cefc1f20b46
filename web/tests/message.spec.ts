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

test("a message at the end of a long log, plain and in gzip", async ({ quiet: page }) => {
  const log = Buffer.concat([Buffer.from("step 1, loss 2.3\n".repeat(1_200_000)), readFileSync(`${MESSAGES}/gnn_edges_f32.txt`)]);
  for (const [name, content] of [["train.log", log], ["train.log.gz", gzipSync(log)]] as const) {
    await page.goto("./");
    await open(page, name, content);
    await expect(page.locator(".lead")).toContainText("Padding is the cause");
    await expect(page.getByRole("status")).toContainText(`Found in ${name}`);
  }
});

test("a message needs the smallest part of the core alone, and its bars are to scale", async ({ quiet: page }) => {
  const fetched: string[] = [];
  page.on("request", (request) => fetched.push(request.url()));
  await page.goto("./");
  await paste(page, readFileSync(`${MESSAGES}/public/hbm_v4.txt`, "utf8"));
  await expect(page.locator(".bars .budget")).toHaveCount(2);
  expect(fetched.filter((url) => url.endsWith(".wasm"))).toHaveLength(1);
  const widths = await page.locator(".bars .budget > span").evaluateAll((spans) => spans.map((span) => span.getBoundingClientRect().width));
  expect(widths[0]! / widths[1]!).toBeCloseTo(63.8 / 30.75, 1);
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
