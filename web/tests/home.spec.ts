import { accessible, expect, test } from "./page";

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

test("works without a network once it is loaded", async ({ quiet: page, context }) => {
  await page.goto("./#shape=" + encodeURIComponent("f32[3,5]"));
  await expect(page.locator("article.shape svg").first()).toBeVisible();
  await context.setOffline(true);
  await page.getByLabel("A shape, an out-of-memory message or HLO text").fill("f32[4,8]{1,0:T(2,4)(2,1)}");
  await expect(page.locator(".facts")).toContainText("128 B");
});
