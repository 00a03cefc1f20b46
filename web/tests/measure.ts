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
  const size = (of: string[]) => of.reduce((sum, file) => sum + gzipSync(readFileSync(file), { level: 9 }).length, 0);
  const core = (part: string) => size([`${root}/web/pkg/${part}/tilewise_wasm_bg.wasm`]);
  const page = size(files.filter((file) => !file.endsWith(".wasm")));
  const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(0)} kB`;
  report("first load to a shape's picture, gzipped", kilobytes(page + core("shapes")), "400 kB");
  report("first load to a program's story, gzipped", kilobytes(page + core("programs")), "400 kB");
  report("first load to a message's verdict, gzipped", kilobytes(page + core("messages")), "400 kB");
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

/// HLO text of about so many bytes: an entry that repeats the example's instructions under other names. Made in the page.
function program(text: string, bytes: number): File {
  const start = text.indexOf("\n", text.indexOf("ENTRY ")) + 1;
  const root = text.lastIndexOf("\n", text.indexOf("\n}", start) - 1) + 1;
  const lines = text.slice(start, root);
  const repeated = lines.split("\n").filter((line) => line && !line.includes(" parameter("));
  const own = repeated.map((line) => /^\s*([%\w.-]+) =/.exec(line)?.[1] ?? "").filter(Boolean);
  const names = new RegExp(`(?<![\\w.%-])(${own.map((name) => name.replaceAll(".", "\\.")).join("|")})(?![\\w.-])`, "g");
  const marked = repeated.join("\n").replace(names, "$1\u0000");
  const parts = [text.slice(0, start), lines];
  for (let [copy, length] = [1, text.length]; length < bytes; copy++) {
    const part = `${marked.replaceAll("\u0000", `.copy${copy}`)}\n`;
    parts.push(part);
    length += part.length;
  }
  parts.push(text.slice(root));
  return new File(parts, "measured.hlo");
}

async function time(page: Page, megabytes: number, aim: string): Promise<void> {
  test.setTimeout(300_000);
  await page.goto("./");
  // The core is loaded before the clock runs.
  await open(page, "small.hlo", readFileSync(`${root}/examples/gnn_large.v5e.hlo`));
  await page.locator("article.program").waitFor();
  const text = readFileSync(`${root}/examples/gnn_large.v5e.hlo`, "utf8");
  const taken = await page.evaluate(
    async ({ text, bytes, make }) => {
      const file = (new Function(`return ${make}`)() as (text: string, bytes: number) => File)(text, bytes);
      const transfer = new DataTransfer();
      transfer.items.add(file);
      document.querySelector("article.program")!.remove();
      // The longest that the page's own thread didn't answer.
      let [longest, last] = [0, performance.now()];
      const pulse = setInterval(() => {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }, 5);
      await new Promise((done) => setTimeout(done, 300));
      longest = 0;
      const start = performance.now();
      dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
      while (!document.querySelector("article.program, [role=alert]")) await new Promise((done) => setTimeout(done, 5));
      const time = performance.now() - start;
      await new Promise((done) => setTimeout(done, 500));
      clearInterval(pulse);
      return { time, longest, size: file.size, story: document.querySelector(".lead, [role=alert]")?.textContent ?? "" };
    },
    { text, bytes: megabytes * 1e6, make: program.toString() },
  );
  report(`${(taken.size / 1e6).toFixed(0)} MB of HLO text, drop to story`, `${taken.time.toFixed(0)} ms`, aim);
  report(`${megabytes} MB: the longest that the page didn't answer`, `${taken.longest.toFixed(0)} ms`, "100 ms");
  console.log(`  ${taken.story}`);
}

test("10 MB", async ({ page }) => time(page, 10, "1000 ms"));
test("100 MB", async ({ page }) => time(page, 100, "no freeze"));
