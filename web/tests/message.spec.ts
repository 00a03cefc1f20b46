import type { Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { accessible, commandLine, expect, open, root, test } from "./page";

const MESSAGES = `${root}/crates/tilewise-oom/tests/data`;

/// Pastes a message, and waits until it is shown: others may be like it.
async function paste(page: Page, text: string): Promise<void> {
  await page.getByLabel("A shape, an out-of-memory message or HLO text").fill(text);
  await expect.poll(() => page.locator("details pre").last().textContent({ timeout: 1000 }).catch(() => "")).toBe(text);
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

test("a bound is never enough to fit, equal rows are one, and small ones are folded away", async ({ quiet: page }) => {
  await page.goto("./");
  const advice = page.locator(".advice li");
  for (const name of readdirSync(MESSAGES).filter((name) => name.endsWith(".txt"))) {
    const text = readFileSync(`${MESSAGES}/${name}`, "utf8");
    const explained = JSON.parse(execFileSync(commandLine(), ["explain", `${MESSAGES}/${name}`, "--format", "json"], { encoding: "utf8" }));
    await paste(page, text);
    await expect(page.locator("article.message")).toHaveAttribute("data-verdict", explained.verdict);
    await expect(advice).toHaveCount(explained.advice.length);
    for (const [at, { is_bound }] of explained.advice.entries()) if (is_bound) await expect(advice.nth(at)).not.toContainText("enough");
    const rows = page.getByRole("region", { name: "Table of allocations" }).locator("tbody tr");
    if (explained.allocations.length) expect(await rows.count()).toBeLessThanOrEqual(explained.allocations.length);
  }
  const entry = (at: number) => `  ${at}. Size: 64.0M\n     Shape: f32[16777216]{0:T(1024)}\n     Unpadded size: 64.0M\n     XLA label: copy\n     ==========================\n`;
  await paste(page, `RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.00G of 15.75G hbm. Exceeded hbm capacity by 1.25G.\n  Largest program allocations in hbm:\n${[1, 2, 3].map(entry).join("\n")}`);
  await expect(page.getByRole("region", { name: "Table of allocations" }).locator("tbody tr")).toHaveCount(1);
  await expect(page.getByRole("region", { name: "Table of allocations" })).toContainText("3 × f32[16777216]");
});

test("what frees more than is missing says both", async ({ quiet: page }) => {
  await page.goto("./");
  await paste(page, "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.00G of 15.75G hbm. Exceeded hbm capacity by 1.25G.\n  Largest program allocations in hbm:\n  1. Size: 16.00G\n     Operator: op_name=\"jit(f)/vmap(mul)\"\n     Shape: bf16[8,32768,32768]{2,1,0:T(8,128)(2,1)}\n     Unpadded size: 16.00G\n     XLA label: fusion.1 = fusion(p)\n     Allocation type: HLO temp\n     ==========================\n");
  await expect(page.locator(".advice li").first()).toContainText(/Frees up to \d+\.\d\d GiB, more than the 1\.25 GiB that is missing/);
});

test("a kernel's windows are listed as their blocks", async ({ quiet: page }) => {
  await page.goto("./");
  await paste(page, readFileSync(`${MESSAGES}/scoped_vmem_blocks_v6e.txt`, "utf8"));
  const rows = page.getByRole("region", { name: "Table of allocations" }).locator("tbody tr");
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toContainText("f32[4096,2048] × 2");
  await expect(rows.first()).toContainText("input window 0 of f32[8192,2048]");
});

test("sizes are rounded as in sentences", async ({ quiet: page }) => {
  await page.goto("./");
  // 63.125 GiB of 64 are padding.
  await paste(page, "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 64.00G of 15.48G hbm. Exceeded hbm capacity by 48.52G.\n\nProgram hbm requirement 64.00G:\n    HLO temp         64.00G (1.4% utilization: Unpadded (896.00M) Padded (64.00G), 0.0% fragmentation (0B))\n");
  await expect(page.locator(".lead")).toContainText("63.12 GiB of 64.00 GiB holds no data");
  await expect(page.locator(".keys")).toContainText("63.12 GiB padding");
});

test("a log cut between two entries joins none", async ({ quiet: page }) => {
  await page.goto("./");
  await paste(page, "  2. Size: 6.00G\n     Shape: u32[12582912,1]{1,0:T(8,128)}\n     Unpadded size: 48.00M\n     Extra memory due to padding: 5.95G (128.0x expansion)\n     ==========================\n\n  3. Size: 6.00G\n     Shape: bf16[512,16,3072]{2,1,0:T(8,128)(2,1)}\n     Unpadded size: 48.00M\n     ==========================\n");
  const row = page.getByRole("region", { name: "Table of allocations" }).locator("tbody tr", { hasText: "bf16[512,16,3072]" });
  await expect(row).toContainText("48.00 MiB");
  await expect(page.locator(".lead")).toContainText("5.95 GiB holds no data");
});

test("a phone's width, reasons on lines of their own", async ({ quiet: page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("./");
  await paste(page, readFileSync(`${MESSAGES}/gnn_edges_f32.txt`, "utf8"));
  await expect(page.locator("tbody tr").first()).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  const width = await page.locator("tbody td:last-child .muted").first().evaluate((cell) => cell.getBoundingClientRect().width);
  expect(width).toBeGreaterThan(180);
});
