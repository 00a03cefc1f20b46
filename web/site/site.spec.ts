import AxeBuilder from "@axe-core/playwright";
import { type APIRequestContext, expect, test } from "@playwright/test";

/** All that links of the site lead to, with the status of each, and which of it are documents. */
async function walk(request: APIRequestContext): Promise<{ asked: Map<string, number>; documents: string[] }> {
  const asked = new Map<string, number>();
  const documents: string[] = [];
  const left = ["/"];
  while (left.length > 0) {
    const path = left.pop()!;
    if (asked.has(path)) continue;
    const answer = await request.get(path);
    asked.set(path, answer.status());
    // The page and the crates' documentation have tests of their own.
    const isPage = (answer.headers()["content-type"] ?? "").startsWith("text/html");
    if (!isPage || /^\/(api|explorer)\//.test(path)) continue;
    documents.push(path);
    for (const [, link] of (await answer.text()).matchAll(/(?:href|src)="([^"]*)"/g)) {
      const target = new URL(link!.replaceAll("&amp;", "&"), `http://site${path}`);
      if (target.host === "site") left.push(target.pathname);
    }
  }
  return { asked, documents };
}

test("every link leads somewhere, and no document is wider than a phone", async ({ page, request }) => {
  test.setTimeout(600_000);
  const { asked, documents } = await walk(request);
  expect([...asked].filter(([, status]) => status !== 200)).toEqual([]);
  expect(documents.length).toBeGreaterThan(40);
  await page.setViewportSize({ width: 390, height: 800 });
  for (const path of documents) {
    await page.goto(path);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(390);
  }
});

for (const [word, found] of [
  ["T(8,128)", "/docs/layouts/"],
  ["E1001", "/docs/errors/E1001/"],
  ["install", "/docs/install/"],
  ["donate", "/docs/advice/"],
  ["--tpu", "/docs/"],
  ["--against", "/reference/command-line/"],
] as const) {
  test(`the search finds ${word}`, async ({ page }) => {
    await page.goto(`/?q=${encodeURIComponent(word)}`);
    await expect(page.locator(`.md-search-result__link[href*="${found}"]`).first()).toBeAttached();
  });
}

test("the explorer draws a layout in the page that explains it", async ({ page }) => {
  await page.goto("/docs/layouts/");
  const explorer = page.frameLocator("iframe");
  await explorer.locator("body").waitFor();
  test.skip((await explorer.locator("body").innerText()).includes("Left out"), "a build of the documents alone");
  await expect(explorer.locator("svg").first()).toBeVisible();
});

test("what the pages of messages say stands out", async ({ page }) => {
  for (const path of ["/docs/out-of-memory/", "/docs/errors/E1000/", "/docs/install/"]) {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.goto(path);
      const { violations } = await new AxeBuilder({ page }).withRules(["color-contrast"]).analyze();
      expect(violations.flatMap(({ nodes }) => nodes.map(({ html }) => html)), path).toEqual([]);
    }
  }
});
