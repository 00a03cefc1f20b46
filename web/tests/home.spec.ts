import { readFileSync } from "node:fs";
import { accessible, expect, hlo, open, root, test, whole } from "./page";

/// A program that is too large for a link.
function grown(): Buffer {
  const comment = `// ${"x".repeat(1000)}\n`;
  return Buffer.concat([hlo("examples/gnn_large.v5e.hlo"), Buffer.from(comment.repeat(300))]);
}

test("the gallery: every example opens", async ({ quiet: page }) => {
  await page.goto("./");
  await accessible(page);
  const cards = page.locator(".gallery button");
  const count = await cards.count();
  expect(count).toBeGreaterThanOrEqual(12);
  for (let k = 0; k < count; k++) {
    await cards.nth(k).click();
    await expect(page.locator("article").first()).toBeVisible();
    await page.getByRole("link", { name: "tilewise" }).click();
    await expect(cards.first()).toBeVisible();
  }
});

test("dropped files", async ({ quiet: page }) => {
  await page.goto("./");
  const transfer = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["f32[3,5]{1,0:T(2,2)}"], "shape.txt"));
    return transfer;
  });
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
  await expect(page.locator("article.shape svg").first()).toBeVisible();
});

test("light and dark", async ({ quiet: page }) => {
  await page.goto("./");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await background()).toBe("rgb(13, 17, 23)");
  await page.getByRole("button", { name: "Light or dark" }).click();
  expect(await background()).toBe("rgb(255, 255, 255)");
});

test("the theme stays, and what is shown with it", async ({ quiet: page }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto("./");
  await open(page, "large.hlo", grown());
  await expect(page.locator(".lead")).toContainText("Holds");
  const lead = await page.locator(".lead").textContent();
  await page.getByRole("button", { name: "Light or dark" }).click();
  await expect(page.locator(".lead")).toHaveText(lead!);
  await page.reload();
  await expect(page.locator(".lead")).toHaveText(lead!);
  expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe("rgb(255, 255, 255)");
});

test("what is too large for a link: Back and Reload find it, another browser is told", async ({ quiet: page, browser }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]"));
  await expect(page.locator("article.shape svg").first()).toBeVisible();
  await open(page, "large.hlo", grown());
  await expect(page.locator(".lead")).toContainText("Holds");
  await expect(page).toHaveURL(/#kept=/);
  await expect(page.getByRole("button", { name: "Copy link" })).toBeDisabled();
  await page.goBack();
  await expect(page.locator("article.shape")).toBeVisible();
  await page.goForward();
  await expect(page.locator(".lead")).toContainText("Holds");
  const other = await (await browser.newContext()).newPage();
  await other.goto(page.url());
  await expect(other.getByRole("alert")).toContainText("Open the file again");
});

test("what is typed replaces, and other entries stay", async ({ quiet: page }) => {
  await page.goto("./");
  await page.getByLabel("A shape, an out-of-memory message or HLO text").pressSequentially("f32[8,128]");
  await expect(page.locator(".facts")).toContainText("4.00 KiB");
  await page.goBack();
  await expect(page.locator(".gallery").first()).toBeVisible();
});

test("the whole page by keyboard", async ({ quiet: page }) => {
  await page.goto("./");
  const focused = () => page.evaluate(() => (document.activeElement?.matches("button, summary") && document.activeElement.textContent) || "");
  const tabTo = async (text: string) => {
    for (let k = 0; k < 80; k++) {
      await page.keyboard.press("Tab");
      if ((await focused()).includes(text)) return;
    }
    throw new Error(`the Tab key doesn't reach ${text}`);
  };
  await tabTo("gnn_large.v5e.hlo");
  await page.keyboard.press("Enter");
  await whole(page);
  await tabTo("VMEM");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: /At the peak: 48.83 MiB/ })).toBeVisible();
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: /At the peak: 311.30 MiB/ })).toBeVisible();
  const slider = page.getByRole("slider", { name: "Moment in the program's order" });
  for (let k = 0; k < 10 && !(await slider.evaluate((slider) => slider === document.activeElement)); k++) await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowLeft");
  await expect(page.getByRole("heading", { name: /At step 21:/ })).toBeVisible();
  await page.keyboard.press("p");
  await tabTo("By line");
  await page.keyboard.press("Enter");
  await tabTo("By module");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await tabTo("f32[400000,12]");
  await page.keyboard.press("Enter");
  await expect(page.locator(".detail")).toContainText("padding");
  await page.keyboard.press("Escape");
  await expect(page.locator(".detail")).toBeHidden();
  await expect.poll(focused).toContain("f32[400000,12]");
  await tabTo("The program’s text");
  await page.keyboard.press("Enter");
  await expect(page.locator(".lines [aria-current]")).toContainText("fusion.6");
});

test("damaged links, empty files, and words", async ({ quiet: page }) => {
  for (const hash of ["z=%%%", "z=abc", "view=else"]) {
    await page.goto(`./#${hash}`);
    await page.reload();
    await expect(page.getByRole("alert")).toContainText("damaged");
  }
  await open(page, "empty.txt", Buffer.alloc(0));
  await expect(page.getByRole("alert")).toContainText("empty");
  await page.getByLabel("A shape, an out-of-memory message or HLO text").fill("hello my jax job died");
  await expect(page.getByRole("alert")).toContainText("Paste the text that begins with RESOURCE_EXHAUSTED");
  await accessible(page);
});

test("a core that can't be loaded is told, and tried again", async ({ page }) => {
  let isDown = true;
  await page.route("**/*.wasm", (route) => (isDown ? route.abort() : route.continue()));
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]"));
  await expect(page.getByRole("alert")).toContainText("could not load");
  isDown = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.locator("article.shape svg").first()).toBeVisible();
});

test("works without a network once it is loaded", async ({ quiet: page, context }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]"));
  await expect(page.locator("article.shape svg").first()).toBeVisible();
  await context.setOffline(true);
  await page.getByLabel("A shape, an out-of-memory message or HLO text").fill("f32[4,8]{1,0:T(2,4)(2,1)}");
  await expect(page.locator(".facts")).toContainText("128 B");
});

test("the page's colours are those of pictures", () => {
  const style = readFileSync(`${root}/web/src/style.css`, "utf8");
  const palette = readFileSync(`${root}/crates/tilewise-draw/src/palette.rs`, "utf8");
  const tiles = [...palette.matchAll(/tiles: \[([^;]*?)\n {4}\]/g)].map((theme) => [...theme[1]!.matchAll(/\[0x(..), 0x(..), 0x(..)\]/g)].map(([, r, g, b]) => `#${r}${g}${b}`));
  expect(tiles.map((theme) => theme.length)).toEqual([8, 8]);
  for (const theme of tiles) theme.forEach((color, k) => expect(style).toContain(`--tile-${k}: ${color};`));
});
