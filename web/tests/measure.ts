// Sizes and times, printed: `cargo xtask web --measure`.

import { test, type Page } from "@playwright/test";
import { readdirSync, readFileSync } from "node:fs";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { open, root, whole } from "./page";

function report(what: string, measured: string, aim: string): void {
  console.log(`${what.padEnd(52)} ${measured.padStart(12)}   aim ${aim}`);
}

/// Bytes that a first visit fetches until something is shown, each file compressed as hosts do.
async function load(page: Page, what: string, aim: string, show: () => Promise<void>): Promise<void> {
  const fetched = new Set<string>();
  page.on("requestfinished", (request) => fetched.add(new URL(request.url()).pathname));
  await page.goto("./");
  await page.locator(".gallery").first().waitFor();
  await show();
  // Examples are the visitor's own inputs.
  const files = [...fetched].filter((path) => /(\.html|\.js|\.css|\.wasm|\/)$/.test(path)).map((path) => `${root}/web/dist${path.endsWith("/") ? `${path}index.html` : path}`);
  const size = (compressed: (bytes: Buffer) => Buffer) => `${(files.reduce((sum, file) => sum + compressed(readFileSync(file)).length, 0) / 1000).toFixed(0)} kB`;
  report(`first load to ${what}, brotli`, size((bytes) => brotliCompressSync(bytes)), aim);
  report(`first load to ${what}, gzip`, size((bytes) => gzipSync(bytes, { level: 9 })), aim);
}

test("first load: a shape", ({ page }) =>
  load(page, "a shape's picture", "220 kB", async () => {
    await page.getByRole("textbox").fill("f32[8,128]");
    await page.locator("article.shape svg").first().waitFor();
  }));
test("first load: a message", ({ page }) =>
  load(page, "a message's verdict", "220 kB", async () => {
    await page.getByRole("textbox").fill(readFileSync(`${root}/crates/tilewise-oom/tests/data/public/smem.txt`, "utf8"));
    await page.locator("article.message").waitFor();
  }));
test("first load: a program", ({ page }) =>
  load(page, "a program's story", "450 kB", async () => {
    await open(page, "a.hlo", readFileSync(`${root}/examples/gnn_large.v5e.hlo`));
    await page.locator("article.program").waitFor();
  }));

/// Forty programs and messages, and how far each moves what is shown already: the sum of layout shifts.
test("layout shifts", async ({ page }) => {
  test.setTimeout(600_000);
  const of = (folder: string, kind: RegExp) => readdirSync(`${root}/${folder}`).filter((name) => kind.test(name)).map((name) => `${folder}/${name}`);
  const data = "crates/tilewise-oom/tests/data";
  const messages = [...of(data, /\.txt$/), ...of(`${data}/public`, /\.txt$/)].slice(0, 20);
  const programs = [...of("examples", /\.hlo$/), ...of("testing/programs", /\.hlo$/)].slice(0, 20);
  const shifts: [number, string][] = [];
  for (const file of [...programs, ...messages]) {
    await page.goto("./");
    await page.locator(".gallery").first().waitFor();
    await page.evaluate(() => {
      const seen = window as unknown as { shift: number };
      seen.shift = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean })[]) if (!entry.hadRecentInput) seen.shift += entry.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    await open(page, file.split("/").at(-1)!, readFileSync(`${root}/${file}`));
    if (file.endsWith(".txt")) await page.locator("article.message, [role=alert]").first().waitFor();
    else await whole(page);
    await page.waitForTimeout(600);
    shifts.push([await page.evaluate(() => (window as unknown as { shift: number }).shift), file]);
    if (process.env["SHOTS"]) await page.screenshot({ path: `${process.env["SHOTS"]}/${file.replaceAll("/", "_")}.png` });
  }
  shifts.sort(([one], [other]) => other - one);
  report(`layout shift of ${shifts.length} inputs, the largest`, shifts[0]![0].toFixed(3), "0.1");
  report("layout shift, median", shifts[shifts.length >> 1]![0].toFixed(3), "0.1");
  for (const [shift, file] of shifts.slice(0, 5)) console.log(`  ${shift.toFixed(3)}  ${file}`);
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

/// HLO text of about `bytes` bytes: the example's instructions again and again under other names. Made in the page.
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

test("a log of 20 MB, pasted into the box", async ({ page }) => {
  await page.goto("./");
  const message = readFileSync(`${root}/crates/tilewise-oom/tests/data/gnn_edges_f32.txt`, "utf8");
  const { time, longest } = await page.evaluate(async (message) => {
    const log = "step 1, loss 2.3\n".repeat(20e6 / 17) + message;
    const data = new DataTransfer();
    data.setData("text/plain", log);
    let [longest, last] = [0, performance.now()];
    const pulse = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 5);
    await new Promise((done) => setTimeout(done, 300));
    longest = 0;
    const start = performance.now();
    document.querySelector("textarea")!.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    while (!document.querySelector("article.message")) await new Promise((done) => setTimeout(done, 5));
    clearInterval(pulse);
    return { time: performance.now() - start, longest };
  }, message);
  report("20 MB log pasted into the box, to the cause", `${time.toFixed(0)} ms`, "2000 ms");
  report("20 MB log: the longest that the page didn't answer", `${longest.toFixed(0)} ms`, "100 ms");
});

/// The main thread's time a frame: what is asked for in animation frames, and what the events do.
async function frames(page: Page, what: string, aim: string, event: string): Promise<void> {
  const times = await page.evaluate(async (event) => {
    const frame = document.querySelector<HTMLElement>(".timeline")!;
    const box = frame.getBoundingClientRect();
    let spent = 0;
    const original = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (run) =>
      original((time) => {
        const start = performance.now();
        run(time);
        spent += performance.now() - start;
      });
    const times: number[] = [];
    for (let k = 0; k < 40; k++) {
      spent = 0;
      const start = performance.now();
      const at = { clientX: box.x + 100 + 17 * k, clientY: box.y + box.height * 0.8, bubbles: true, cancelable: true };
      frame.dispatchEvent(event === "wheel" ? new WheelEvent("wheel", { ...at, ctrlKey: true, deltaY: k % 2 ? 40 : -40 }) : new PointerEvent("pointermove", at));
      const handled = performance.now() - start;
      await new Promise((done) => original(() => original(done)));
      times.push(handled + spent);
    }
    window.requestAnimationFrame = original;
    return times.sort((a, b) => a - b);
  }, event);
  report(what, `${times[20]!.toFixed(1)} ms`, aim);
  report(`${what}, the slowest of 40`, `${times[39]!.toFixed(1)} ms`, aim);
}

for (const [file, slower] of [["small", 1], ["small", 4], ["100,000 pieces", 1]] as const)
  test(`frames: ${file}, ${slower} times slower`, async ({ page, context }) => {
    test.setTimeout(300_000);
    await page.goto("./");
    const example = readFileSync(`${root}/examples/gnn_large.v5e.hlo`, "utf8");
    if (file === "small") await open(page, "small.hlo", Buffer.from(example));
    else {
      const name = await page.evaluate(({ text, make }) => {
        const file = (new Function(`return ${make}`)() as (text: string, bytes: number) => File)(text, 36e6);
        const transfer = new DataTransfer();
        transfer.items.add(file);
        dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
        return file.name;
      }, { text: example, make: program.toString() });
      await page.getByRole("heading", { level: 1 }).filter({ hasText: name }).waitFor({ timeout: 200_000 });
    }
    await page.locator(".timeline").waitFor();
    await page.waitForTimeout(500);
    if (slower > 1) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: slower });
    const with_ = slower > 1 ? `, ${slower} times slower` : "";
    await frames(page, `${file}: a pointer's move${with_}`, "8 ms", "pointermove");
    await frames(page, `${file}: the wheel${with_}`, "16 ms", "wheel");
  });
test("100 MB", async ({ page }) => time(page, 100, "no freeze"));
