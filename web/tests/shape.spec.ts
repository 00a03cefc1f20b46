import { accessible, expect, test } from "./page";

test("a shape is drawn as it is typed", async ({ quiet: page }) => {
  await page.goto("./");
  await page.getByLabel("A shape, an out-of-memory message or HLO text").fill("f32[3,5]{1,0:T(2,2)}");
  await expect(page.locator("article.shape svg").first()).toBeVisible();
  await expect(page.locator(".facts")).toContainText("60 B");
  await expect(page.locator(".facts")).toContainText("[2,3,2,2]");
  await accessible(page);
});

test("errors have a caret under the text", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0:T(2,x)}"));
  const alert = page.getByRole("alert");
  await expect(alert.locator(".caret")).toHaveText("^");
  const [line = "", carets = ""] = (await alert.locator("pre").textContent())!.split("\n");
  expect(line[carets.indexOf("^")]).toBe("x");
});

test("a shape that is offered instead is a button", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("float32[3,4]"));
  await page.getByRole("alert").getByRole("button", { name: "f32[3,4]" }).click();
  await expect(page.locator("article.shape svg").first()).toBeVisible();
  expect(new URL(page.url()).hash).toBe("#shape=" + encodeURIComponent("f32[3,4]"));
});

test("each part of the notation is explained, and a tile lights up", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0:T(2,2)}"));
  await page.locator(".notation").getByRole("button", { name: "T(2,2)" }).hover();
  await expect(page.locator(".meaning")).toContainText("blocks of 2 rows × 2 columns");
  await expect(page.locator("article.shape svg.lit .same").first()).toBeVisible();
  await page.locator(".notation").getByRole("button", { name: "1,0" }).focus();
  await expect(page.locator(".meaning")).toContainText("dimension 1 varies fastest");
});

test("a cell says where it lies, in the array and in memory", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0:T(2,2)}"));
  const cells = page.locator(".canvas [data-offset='17']");
  await cells.first().hover();
  await expect(page.locator(".place")).toContainText("Element [2,3]");
  await expect(page.locator(".place")).toContainText("byte 68");
  await expect(page.locator(".canvas .here")).toHaveCount(2);
  await page.locator(".canvas [data-padding]").first().hover();
  await expect(page.locator(".place")).toContainText("Padding");
});

test("cells by keyboard", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0:T(2,2)}"));
  await page.locator(".canvas").focus();
  await expect(page.locator(".place")).toContainText("Element [0,0]");
  await page.keyboard.press("ArrowRight");
  await expect(page.locator(".place")).toContainText("Element [0,1] · offset 1");
  await page.keyboard.press("ArrowDown");
  await expect(page.locator(".place")).toContainText("Element [1,1] · offset 3");
});

test("elements that share a word", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("bf16[300,500]{1,0:T(8,128)(2,1)}"));
  await page.locator(".canvas [data-offset='1']").first().hover();
  await expect(page.locator(".place")).toContainText("Its 32-bit word holds [0,0] [1,0].");
});

test("two layouts side by side", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0}"));
  await page.getByLabel("Another layout to compare with").fill("f32[3,5]{0,1}");
  await expect(page.locator("aside")).toContainText("(0,1) is at offset 1; as (0,1) it would be at 3");
  await page.getByLabel("Another layout to compare with").fill("f32[3,5]{1,0:T(1,1)}");
  await expect(page.locator("aside")).toContainText("identical");
  await page.reload();
  await expect(page.getByLabel("Another layout to compare with")).toHaveValue("f32[3,5]{1,0:T(1,1)}");
});

test("what a TPU makes of an array", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[400000,12]{1,0:T(8,128)}"));
  const panel = page.locator(".tpu");
  await panel.getByLabel("Element type").selectOption("bf16");
  await expect(panel.getByRole("button", { name: /bf16\[400000,12\]/ })).toBeVisible();
  await panel.getByLabel("Dimension 1", { exact: true }).fill("128");
  await expect(panel).toContainText("no padding");
  await panel.getByLabel("Dimension 1, by powers of two").focus();
  await page.keyboard.press("ArrowRight");
  await expect(panel.getByRole("button", { name: /bf16\[400000,152\]/ })).toBeVisible();
});

test("steps, in words and as programs", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0:T(2,2)}"));
  const steps = page.getByLabel("Steps", { exact: true });
  await expect(steps).toContainText("pad        [3,5] → [4,6]");
  await page.getByRole("button", { name: "NumPy" }).click();
  await expect(steps).toContainText("np.");
  await page.getByRole("button", { name: "Steps" }).click();
  await expect(page.locator(".canvas svg")).toBeVisible();
});

test("repeated tiles and merged dimensions", async ({ quiet: page }) => {
  for (const shape of ["f32[12,3,5,4]{3,2,1,0:T(8,128)(*,2,1)}", "f32[3,5]{1,0:T(4)}", "s4[64,64]{1,0:T(8,128)(8,1)E(4)}", "f32[]"]) {
    await page.goto("./#shape=" + encodeURIComponent(shape));
    await page.reload();
    await expect(page.locator("article.shape svg, [role=alert]").first()).toBeVisible();
  }
  await page.goto("./#shape=" + encodeURIComponent("(f32[3,5]{1,0}, s32[7]{0})"));
  await page.getByRole("button", { name: "s32[7]{0}" }).click();
  await expect(page.locator("article.shape svg").first()).toBeVisible();
});

test("copies as SVG, PNG and link", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0:T(2,2)}"));
  const read = () => page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole("button", { name: "Copy SVG" }).click();
  await expect.poll(read).toMatch(/^<svg /);
  await page.getByRole("button", { name: "Copy link" }).click();
  await expect.poll(read).toContain("#shape=f32%5B3%2C5%5D");
  await page.getByRole("button", { name: "Copy PNG" }).click();
  const types = () => page.evaluate(async () => (await navigator.clipboard.read()).flatMap((item) => item.types));
  await expect.poll(types).toContain("image/png");
});

test("a phone's width", async ({ quiet: page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("./#shape=" + encodeURIComponent("bf16[300,500]{1,0:T(8,128)(2,1)}"));
  await expect(page.locator("article.shape svg").first()).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});

test("print", async ({ quiet: page }) => {
  const shape = "bf16[300,500]{1,0:T(8,128)(2,1)}";
  await page.goto("./#shape=" + encodeURIComponent(shape));
  await expect(page.locator("article.shape svg").first()).toBeVisible();
  await page.emulateMedia({ media: "print" });
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe(shape);
  await expect(page.locator(".place")).toBeHidden();
});

test("a tuple: its arrays, drawn for either theme", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("(f32[4,8]{1,0:T(2,4)(2,1)}, s8[3,200]{1,0:T(8,128)(4,1)})"));
  await expect(page.locator("article.shape li")).toHaveCount(2);
  const svg = () => page.locator("article.shape svg").first().evaluate((svg) => svg.outerHTML);
  const before = await svg();
  await page.getByRole("button", { name: "Light or dark" }).click();
  await expect.poll(svg).not.toBe(before);
  await accessible(page);
  await page.locator("article.shape li button").last().click();
  await expect(page.locator(".facts")).toBeVisible();
});

test("a small tiled shape is drawn step by step first", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0:T(2,2)}"));
  const steps = page.getByRole("region", { name: "Step by step" });
  await expect(steps.locator("svg")).toContainText("1. pad [3,5] → [4,6]");
  expect(await steps.evaluate((steps) => steps.compareDocumentPosition(document.querySelector(".canvas")!) & Node.DOCUMENT_POSITION_FOLLOWING)).toBeTruthy();
  await page.goto("./#shape=" + encodeURIComponent("f32[4096,128]{1,0:T(8,128)}"));
  await expect(page.locator(".facts")).toContainText("2.00 MiB");
  await expect(steps).toHaveCount(0);
});

test("what is typed wrong leaves the last picture, and a second layout the first", async ({ quiet: page }) => {
  await page.goto("./");
  const box = page.getByLabel("A shape, an out-of-memory message or HLO text");
  await box.fill("f32[3,5]{1,0:T(2,2)}");
  await expect(page.locator("article.shape .canvas svg")).toBeVisible();
  await box.fill("f32[3,5]{1,0:T(2,");
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page.locator("article.shape .canvas svg")).toBeVisible();
  await expect(box).toHaveValue("f32[3,5]{1,0:T(2,");
  await box.fill("f32[3,5]{1,0:T(2,4)}");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await expect(page.locator(".notation")).toContainText("T(2,4)");
  await page.getByLabel("Another layout to compare with").fill("f32[3,5]{1,0:T(");
  await expect(page.getByRole("alert")).toHaveCount(1);
  await expect(page.locator("article.shape .canvas svg")).toBeVisible();
  await box.fill("hello");
  await expect(page.getByRole("alert").first()).toContainText("Paste the text that begins with RESOURCE_EXHAUSTED");
});

test("a shape without a layout says that no TPU lays it out so, and what one does", async ({ quiet: page }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[100000,1]"));
  const note = page.locator(".warning", { hasText: "no TPU lays an array out so" });
  await note.getByRole("button").click();
  await expect(page.locator(".notation")).toContainText(":T(");
  await expect(note).toHaveCount(0);
});

test("a tap on a cell says where it lies", async ({ browser }) => {
  const context = await browser.newContext({ hasTouch: true, viewport: { width: 390, height: 844 } });
  const page = await context.newPage();
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]{1,0:T(2,2)}"));
  await page.locator(".canvas [data-offset='17']").first().tap();
  await expect(page.locator(".place")).toContainText("Element [2,3]");
  await context.close();
});
