// A program: the verdict and the story, what is said of machines, and its tables.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, commandLine, expect, hlo, open, openProgram, printed, root, test } from "./page";
import { GNN, tooLarge } from "./programs";

test("the story at the peak, and the line to change", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  await expect(page.getByRole("heading", { level: 1 })).toContainText("jit_f");
  await expect(page.locator(".lead")).toContainText("Holds 311.37 MiB of HBM at most");
  await expect(page.locator(".story")).toContainText("268.58 MiB of it is padding, 86.3 %.");
  await expect(page.locator(".advice li").first()).toContainText("→ 45.90 MiB");
  await expect(page.locator(".advice li").first()).toContainText("model.py:439");
  await expect(page.locator(".story")).toContainText("The peak: model.py:439");
  await accessible(page);
});

test("what is alive at a moment adds up to the audit's own sum", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  const report = JSON.parse(execFileSync(commandLine(), ["audit", "gnn_large.v5e.hlo", "--format", "json"], { cwd: `${root}/examples`, encoding: "utf8" }));
  const peak = report.memory_spaces[0].peak_live_bytes / 2 ** 20;
  await expect(page.getByRole("heading", { name: `At the peak: ${peak.toFixed(2)} MiB` })).toBeVisible();
});

test("the verdict is first: what doesn't fit, by how much, with the limit in the picture, and what to do", async ({ quiet: page }) => {
  await page.goto("./");
  const folder = mkdtempSync(join(tmpdir(), "tilewise-"));
  writeFileSync(join(folder, "net.v5e.hlo"), tooLarge());
  const told = spawnSync(commandLine(), ["audit", "net.v5e.hlo", "--tpu", "v5e"], { cwd: folder, encoding: "utf8" }).stdout;
  const [, holds] = /Holds (\S+ \S+) \(/.exec(told)!;
  const [sentence] = /Does not fit a TPU v5e: .* too much\./.exec(told)!;
  await openProgram(page, "net.v5e.hlo", tooLarge());
  await expect(page.locator(".judgement.bad")).toHaveText(sentence);
  await expect(page.locator(".lead")).toContainText(`Holds ${holds}`);
  // The picture of the command line has this number, too.
  spawnSync(commandLine(), ["audit", "net.v5e.hlo", "--tpu", "v5e", "-o", "net.svg"], { cwd: folder });
  expect(readFileSync(join(folder, "net.svg"), "utf8")).toContain(`${holds} at most`);
  // One without a name is of a TPU that is only assumed.
  await openProgram(page, "net.hlo", tooLarge());
  await expect(page.locator(".judgement.bad")).toHaveText(sentence.replace("v5e", "v5e (assumed)"));
});

test("rows and legends name the library's line", async ({ quiet: page }) => {
  const frames = 'HloModule m, is_scheduled=true\n\nFileNames\n1 "/home/me/train.py"\n2 "/usr/lib/python3/site-packages/transformers/models/gpt2/modeling_flax_gpt2.py"\n\nFunctionNames\n1 "step"\n2 "__call__"\n\nFileLocations\n1 {file_name_id=1 function_name_id=1 line=134 end_line=134 column=1 end_column=2}\n2 {file_name_id=2 function_name_id=2 line=720 end_line=720 column=1 end_column=2}\n\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n\n';
  const text = `${frames}ENTRY e {\n  x = f32[512,1024]{1,0:T(8,128)} parameter(0)\n  y = f32[512,8192]{1,0:T(8,128)} custom-call(x), custom_call_target="f", metadata={op_name="jit(step)/h/dot" stack_frame_id=2}\n  ROOT z = f32[512,1024]{1,0:T(8,128)} custom-call(y), custom_call_target="g"\n}\n`;
  await page.goto("./");
  await openProgram(page, "library.hlo", Buffer.from(text));
  const row = page.locator("table.alive tbody tr", { hasText: "f32[512,8192]" });
  await expect(row).toContainText("modeling_flax_gpt2.py:720");
  await expect(page.locator(".keys").last()).toContainText("modeling_flax_gpt2.py:720");
  await page.getByLabel("Filter the table").fill("line:720");
  await expect(row).toBeVisible();
  await row.getByRole("button").last().click();
  await expect(page.locator(".detail")).toContainText("train.py:134 step");
  await page.locator(".detail summary", { hasText: "Call stack (2)" }).click();
  await expect(page.locator(".stack li")).toHaveText(["modeling_flax_gpt2.py:720 __call__", "train.py:134 step"]);
});

test("kernels: what lies between them and their neighbours, as the audit says", async ({ quiet: page }) => {
  let copied = 0;
  for (const name of ["pallas_kernel.v5e.hlo", "pallas_prefetch_alias.v7x.hlo"]) {
    const report = JSON.parse(execFileSync(commandLine(), ["audit", name, "--format", "json"], { cwd: `${root}/testing/programs`, encoding: "utf8", maxBuffer: 1 << 30 }));
    type Side = { copied_bytes: number; shape: string };
    const kernels = report.kernels as { used_bytes: number | null; operands: Side[]; results: Side[] }[];
    const arrays = kernels.flatMap(({ operands, results }) => [...operands, ...results]).filter(({ copied_bytes }) => copied_bytes > 0);
    copied += arrays.length;
    await page.goto("./");
    await openProgram(page, name, hlo(`testing/programs/${name}`));
    await expect(page.locator(".lead")).toContainText("Holds");
    await expect(page.locator("details", { hasText: "VMEM of kernels" })).toHaveCount(kernels.some(({ used_bytes }) => used_bytes !== null) ? 1 : 0);
    const table = page.getByRole("region", { name: "Table of copies at kernels" });
    await expect(table).toHaveCount(arrays.length ? 1 : 0);
    if (arrays.length) await expect(table.locator("tbody tr").first()).toContainText(printed(Math.max(...arrays.map(({ copied_bytes }) => copied_bytes))));
  }
  console.log(`${copied} arrays are copied at kernels`);
});

test("print, and forced colours", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "lstm_train.v4.hlo.gz", hlo("examples/lstm_train.v4.hlo.gz"));
  await expect(page.locator(".lead")).toContainText("397.02 MiB");
  await page.emulateMedia({ media: "print" });
  await expect(page.locator(".top")).toBeHidden();
  await expect(page.locator(".lead")).toBeVisible();
  // A table's omitted rows are named on paper, too.
  await expect(page.locator(".more")).toHaveText(/^\d+ more$/);
  await page.emulateMedia({ media: "screen", forcedColors: "active" });
  expect(await page.locator(".budget span").first().evaluate((part) => getComputedStyle(part).backgroundColor)).not.toBe("rgb(255, 255, 255)");
});

test("a TPU that it must fit", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "gnn_large.v5e.hlo", hlo(GNN));
  // The file is named after one.
  await expect(page.getByLabel("The TPU it must fit")).toHaveValue("tpu:v5e");
  await expect(page.locator(".judgement.good")).toHaveText("Fits a TPU v5e: needs 311.37 MiB of 15.75 GiB, 15.45 GiB left.");
  await page.getByLabel("The TPU it must fit").selectOption("tpu:v6e");
  await expect(page.locator(".judgement")).toHaveText("Fits a TPU v6e: needs 311.37 MiB of 31.24 GiB, 30.94 GiB left.");
});

test("programs of GPUs and CPUs, and one whose text doesn't tell", async ({ quiet: page }) => {
  await page.goto("./");
  await openProgram(page, "attention.h100.hlo", hlo("examples/machines/attention.h100.hlo"));
  await expect(page.locator(".lead")).toContainText("Holds 28.00 MiB of GPU memory at most");
  const machine = page.getByLabel("The machine it is compiled for");
  await machine.selectOption("gpu:h100");
  await expect(page.locator(".judgement")).toHaveText("Fits the memory of a GPU H100: needs 28.00 MiB of 59.32 GiB, 59.30 GiB left.");
  await page.reload();
  await expect(page.locator(".judgement")).toHaveText("Fits the memory of a GPU H100: needs 28.00 MiB of 59.32 GiB, 59.30 GiB left.");
  await accessible(page);
  await open(page, "attention.cpu.hlo", hlo("examples/machines/attention.cpu.hlo"));
  await expect(page.locator(".lead")).toContainText("Holds 54.00 MiB of memory at most");
  const text = "HloModule m, is_scheduled=true\nENTRY e {\n  p = f32[100]{0} parameter(0)\n  a = f32[100]{0} add(p, p)\n  ROOT b = f32[100]{0} multiply(a, a)\n}\n";
  await open(page, "untold.hlo", Buffer.from(text));
  const warning = page.locator(".warning", { hasText: "does not show whether a GPU or a CPU is to run it" });
  await expect(warning).toBeVisible();
  await machine.selectOption("gpu");
  await expect(page.locator(".lead")).toContainText("of GPU memory");
  await expect(warning).toBeHidden();
});

test("a phone's width", async ({ quiet: page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("./");
  // Names have no place to break.
  await openProgram(page, "gnn_large.v5e.hlo", Buffer.from(hlo(GNN).toString().replaceAll("jit(f)/dot_general", `jit(f)/${"dot".repeat(30)}`)));
  await expect(page.locator(".lead")).toContainText("311.37 MiB");
  await expect(page.locator(".story")).toContainText("dotdot");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});
