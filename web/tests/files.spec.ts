// Opening: files of every kind, folders, profiles, pasted texts; and that the audit is the command line's.

import type { Page } from "@playwright/test";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { accessible, commandLine, expect, hlo, open, openProgram, root, test, whole } from "./page";
import { DUMP, GNN, programs } from "./programs";

test("several files stay as tabs", async ({ quiet: page }) => {
  await page.goto("./");
  const message = readFileSync(`${root}/crates/tilewise-oom/tests/data/public/smem.txt`);
  await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles([
    { name: "a.hlo", mimeType: "", buffer: hlo(GNN) },
    { name: "b.txt", mimeType: "", buffer: message },
  ]);
  await expect(page.getByRole("group", { name: "Files" }).getByRole("button")).toHaveCount(2);
  for (const [name, what] of [["b.txt", "article.message"], ["a.hlo", "article.program"], ["b.txt", "article.message"]] as const) {
    await page.getByRole("group", { name: "Files" }).getByRole("button", { name }).click();
    await expect(page.locator(what)).toBeVisible();
  }
});

test("the page's audit is the command line's, byte for byte", async ({ quiet: page }) => {
  test.setTimeout(600_000);
  await page.goto("./");
  const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
  let compared = 0;
  for (const { name, bytes } of programs()) {
    writeFileSync(join(folder, name), bytes);
    let expected: string;
    try {
      expected = execFileSync(commandLine(), ["audit", name, "--format", "json", "--all"], { cwd: folder, encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] });
    } catch {
      continue;
    }
    await openProgram(page, name, bytes);
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save JSON" }).click();
    const saved = readFileSync(await (await download).path(), "utf8");
    expect(saved === expected, `${name}: ${saved.slice(0, 200)} … ${expected.slice(0, 200)}`).toBe(true);
    compared += 1;
  }
  expect(compared).toBeGreaterThan(6);
  console.log(`${compared} programs have equal audits`);
});

test("gzip, protos, cut texts and nonsense, by content", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "whatever.bin", gzipSync(hlo(GNN)));
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  const proto = programs().find(({ name }) => /\.pb(\.gz)?$/.test(name))!;
  await open(page, "a.dat", proto.name.endsWith(".gz") ? gunzipSync(proto.bytes) : proto.bytes);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("a.dat");
  await open(page, "cut.hlo", hlo(GNN).subarray(0, 12_000));
  await expect(page.getByRole("alert")).toContainText("cut off");
  await open(page, "noise.bin", Buffer.from([0, 1, 2, 255, 254, 9, 9, 9]));
  await expect(page.getByRole("alert")).toContainText("nothing that is known");
});

test("kernels: the sentence of the command line, each TPU, a caret under what is wrong", async ({ quiet: page }) => {
  await page.goto("./");
  const path = `${root}/examples/matmul.kernel`;
  const { stdout } = spawnSync(commandLine(), ["kernel", path, "--tpu", "all", "--format", "json"], { encoding: "utf8" });
  const budgets = stdout.trim().split("\n").map((line) => JSON.parse(line) as { tpu: string; sentence: string; remedy: string | null });
  await open(page, "matmul.kernel", readFileSync(path));
  for (const { tpu, sentence, remedy } of budgets) {
    await page.getByRole("group", { name: "TPU" }).getByRole("button", { name: tpu }).click();
    await expect(page.locator(".judgement")).toHaveText(`${sentence}.`);
    await expect(page.locator(".lead")).toHaveCount(remedy ? 1 : 0);
  }
  await expect(page.getByRole("region", { name: "Table of TPUs" }).locator("tbody tr")).toHaveCount(budgets.length);
  await accessible(page);
  await page.reload();
  await expect(page.locator("article.kernel svg")).toBeVisible();
  const divided = `${readFileSync(path, "utf8")}---\ngrid 8\nin f32[64,128] block 8,x @ 0,-\n`;
  await open(page, "two.kernel", Buffer.from(divided));
  const [line = "", carets = ""] = (await page.getByRole("alert").locator("pre").textContent())!.split("\n");
  expect(line[carets.indexOf("^")]).toBe("x");
});

/// Opens a folder, whose audit is the command line's. What the page says it took, and what the command line does.
async function openFolder(page: Page, folder: string): Promise<{ status: string; stderr: string }> {
  await page.goto("./");
  const name = basename(folder);
  const { stdout, stderr } = spawnSync(commandLine(), ["audit", name, "--format", "json", "--all"], { cwd: dirname(folder), encoding: "utf8" });
  await page.locator("input[webkitdirectory]").setInputFiles(folder);
  await whole(page);
  const status = (await page.getByRole("status").textContent())!;
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save JSON" }).click();
  expect(readFileSync(await (await download).path(), "utf8")).toBe(stdout);
  return { status, stderr };
}

test("a profile: its programs by name", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "train.xplane.pb", hlo("examples/train.xplane.pb"));
  await expect(page.locator(".lead")).toContainText("Holds");
  const which = page.getByLabel("Program", { exact: true });
  const names = await which.locator("option").allTextContents();
  expect(names.length).toBeGreaterThan(1);
  const name = (at: number) => names.at(at)!.split(": ")[1]!.split(",")[0]!;
  // The largest is first.
  await expect(page.getByRole("heading", { level: 1 })).toContainText(name(0));
  await which.selectOption({ index: names.length - 1 });
  await expect(page.getByRole("heading", { level: 1 })).toContainText(name(-1));
  await expect(page).toHaveURL(/&at=\d/);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toContainText(name(-1));
  await accessible(page);
});

test("the address keeps the first program of a profile, too", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "train.xplane.pb", hlo("examples/train.xplane.pb"));
  const which = page.getByLabel("Program", { exact: true });
  await which.selectOption("0");
  await expect(page).toHaveURL(/&at=0/);
  await page.reload();
  await expect(which).toHaveValue("0");
});

test("a dump's folder: what the command line takes and leaves", async ({ quiet: page }) => {
  const { status, stderr } = await openFolder(page, DUMP);
  const [, program, plan, left] = /\n {2}(\S+), with the plan in (\S+)\n {2}left: (.*)\n/.exec(stderr)!;
  expect(status).toBe(`Took dump/${program}. Left: ${left}. The compiler’s own plan is dump/${plan}.`);
});

test("of a folder's plans the first that is of the program, or none", async ({ quiet: page }) => {
  const stem = "module_0054.jit_f.cl_1003875606.after_optimizations";
  const assignment = readFileSync(`${DUMP}/${stem}-buffer-assignment.txt`, "utf8");
  const none = mkdtempSync(join(tmpdir(), "tilewise-"));
  writeFileSync(join(none, "a.hlo"), hlo(GNN));
  writeFileSync(join(none, "a-buffer-assignment.txt"), assignment);
  expect((await openFolder(page, none)).status).toContain("No file there has the compiler’s own plan of it.");

  // The text is of another program; the proto beside the program's text has its plan.
  const second = mkdtempSync(join(tmpdir(), "tilewise-"));
  for (const end of [".txt", ".hlo.pb"]) cpSync(`${DUMP}/${stem}${end}`, join(second, stem + end));
  writeFileSync(join(second, `${stem}-buffer-assignment.txt`), assignment.replaceAll(/(value: <\d+ )/g, "$1of_another."));
  expect((await openFolder(page, second)).status).toContain(`The compiler’s own plan is ${basename(second)}/${stem}.hlo.pb.`);
});

test("pasted HLO, and its address", async ({ quiet: page, context }) => {
  await page.goto("./");
  await page.evaluate((text) => navigator.clipboard.writeText(text), hlo(GNN).toString());
  await page.locator("main").click({ position: { x: 2, y: 2 } });
  await page.keyboard.press("ControlOrMeta+v");
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  const second = await context.newPage();
  await second.goto(page.url());
  await expect(second.locator(".lead")).toContainText("311.37 MiB");
  await page.goBack();
  await expect(page.locator(".gallery").first()).toBeVisible();
});

test("texts of Windows, words in a file, and a line without an end", async ({ quiet: page }) => {
  await page.goto("./");
  const message = readFileSync(`${root}/crates/tilewise-oom/tests/data/gnn_edges_f32.txt`, "utf8");
  await open(page, "log.txt", Buffer.from(`\ufeff${message}`, "utf16le"));
  await expect(page.locator(".lead")).toContainText("Padding is the cause");
  await openProgram(page, "a.hlo", Buffer.from(`\ufeff${hlo(GNN)}`, "utf16le"));
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  await open(page, "words.txt", Buffer.from("Container killed: 264.3 MB of 1 GB physical memory used. Stopped (exit 143)"));
  await expect(page.getByRole("alert")).toContainText("nothing that is known here (words)");
  await open(page, "line.json", Buffer.from("[".repeat(400_000)));
  const alert = page.getByRole("alert");
  await expect(alert).not.toContainText("words");
  expect((await alert.textContent())!.length).toBeLessThan(4000);
});

test("a program before optimization says where the one is that runs", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "module_0001.before_optimizations.txt", Buffer.from("HloModule m\n\nENTRY e {\n  p = f32[8,128]{1,0} parameter(0)\n  ROOT r = f32[8,128]{1,0} negate(p)\n}\n"));
  await expect(page.locator(".story")).toContainText("after_optimizations.txt");
});
