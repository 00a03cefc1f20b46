// Sizes and times, printed: `cargo xtask web --measure`.

import { test, type Page } from "@playwright/test";
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { open, root } from "./page";

function report(what: string, measured: string, aim: string): void {
  console.log(`${what.padEnd(52)} ${measured.padStart(12)}   aim ${aim}`);
}

test("first load", () => {
  const dist = `${root}/web/dist`;
  const files = [`${dist}/index.html`, ...readdirSync(`${dist}/assets`).filter((name) => /\.(js|css|wasm)$/.test(name)).map((name) => `${dist}/assets/${name}`)];
  const size = files.reduce((sum, file) => sum + gzipSync(readFileSync(file), { level: 9 }).length, 0);
  report("first load, gzipped", `${(size / 1000).toFixed(0)} kB`, "400 kB");
});

test("a picture", async ({ page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[64,256]{1,0:T(8,128)}"));
  await page.locator("article.shape svg").first().waitFor();
  const times = await page.evaluate(async () => {
    const times: number[] = [];
    const canvas = document.querySelector(".canvas")!;
    for (const name of ["Array", "Array and memory", "Array", "Array and memory", "Array", "Array and memory"]) {
      const drawn = new Promise((done) => new MutationObserver(done).observe(canvas, { childList: true }));
      const start = performance.now();
      [...document.querySelectorAll<HTMLElement>(".tabs button")].find((button) => button.textContent === name)!.click();
      await drawn;
      canvas.getBoundingClientRect();
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b);
  });
  report("picture of f32[64,256], click to layout, median", `${times[3]!.toFixed(1)} ms`, "16 ms");
});

/// HLO text of about so many bytes: an entry that repeats the example's instructions under other names.
function program(bytes: number): Buffer {
  const text = readFileSync(`${root}/examples/gnn_large.v5e.hlo`, "utf8");
  const at = text.indexOf("ENTRY ");
  const start = text.indexOf("\n", at) + 1;
  const end = text.indexOf("\n}", start);
  const root_line = text.lastIndexOf("\n", end - 1) + 1;
  const lines = text.slice(start, root_line);
  const own = [...lines.matchAll(/^\s*(?:ROOT )?(%?[\w.-]+) = /gm)].map((match) => match[1]!);
  const repeated = lines.split("\n").filter((line) => line && !line.includes(" parameter("));
  const names = new RegExp(`(?<![\\w.-])(${own.filter((name) => repeated.some((line) => line.trimStart().startsWith(`${name} =`))).map((name) => name.replaceAll(".", "\\.")).join("|")})(?![\\w.-])`, "g");
  const parts = [text.slice(0, start), lines];
  let length = text.length;
  for (let copy = 1; length < bytes; copy++) {
    const part = `${repeated.join("\n").replace(names, `$1.copy${copy}`)}\n`;
    parts.push(part);
    length += part.length;
  }
  parts.push(text.slice(root_line));
  return Buffer.from(parts.join(""));
}

async function time(page: Page, megabytes: number, aim: string): Promise<void> {
  test.setTimeout(300_000);
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]"));
  await page.locator("article.shape").waitFor();
  const text = program(megabytes * 1e6);
  // The longest that the page's own thread didn't answer.
  await page.evaluate(() => {
    const page = window as unknown as { longest: number; last: number };
    [page.longest, page.last] = [0, performance.now()];
    setInterval(() => {
      page.longest = Math.max(page.longest, performance.now() - page.last);
      page.last = performance.now();
    }, 5);
  });
  const taken = await page.evaluate(
    async ({ base64, large }) => {
      const bytes = large ?? Uint8Array.from(atob(base64!), (character) => character.charCodeAt(0));
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], "measured.hlo"));
      const page = window as unknown as { longest: number; last: number };
      await new Promise((done) => setTimeout(done, 100));
      [page.longest, page.last] = [0, performance.now()];
      const start = performance.now();
      dispatchEvent(Object.assign(new DragEvent("drop", { dataTransfer: transfer, cancelable: true })));
      while (!document.querySelector("article.program, [role=alert]")) await new Promise((done) => setTimeout(done, 5));
      const time = performance.now() - start;
      await new Promise((done) => setTimeout(done, 200));
      return { time, longest: page.longest, story: document.querySelector(".lead, [role=alert]")?.textContent ?? "" };
    },
    { base64: gzipless(text), large: undefined as Uint8Array<ArrayBuffer> | undefined },
  );
  report(`${megabytes} MB of HLO text, drop to story`, `${taken.time.toFixed(0)} ms`, aim);
  report(`${megabytes} MB: the longest that the page didn't answer`, `${taken.longest.toFixed(0)} ms`, "100 ms");
  console.log(`  ${taken.story}`);
}

const gzipless = (text: Buffer) => text.toString("base64");

test("10 MB", async ({ page }) => time(page, 10, "1000 ms"));
test("100 MB", async ({ page }) => time(page, 100, "no freeze"));
void open;
