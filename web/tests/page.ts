// Shared by all tests: a page that makes requests to its own host only, and complains of nothing.

import { test as base, expect, type Page } from "@playwright/test";
import AxeBuilder from "@axe-core/playwright";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const hlo = (name: string) => readFileSync(`${root}/${name}`);

export const test = base.extend<{ quiet: Page }>({
  quiet: async ({ page }, use) => {
    const complaints: string[] = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.route("**/*", (route) => {
      const url = new URL(route.request().url());
      const isOurs = ["127.0.0.1", ""].includes(url.hostname) || url.protocol === "blob:" || url.protocol === "data:";
      if (isOurs) return route.continue();
      complaints.push(`asked for ${url}`);
      return route.abort();
    });
    await use(page);
    expect(complaints).toEqual([]);
  },
});

/// Nothing that keeps people out, in light and in dark.
export async function accessible(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(violations.map(({ id, nodes }) => `${colorScheme} ${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary ?? ""}`)).toEqual([]);
  }
}

/// Opens a file by its content, as the button does.
export async function open(page: Page, name: string, buffer: Buffer): Promise<void> {
  await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles({ name, mimeType: "", buffer });
}

/// Opens a program, and waits until all of it is shown.
export async function openProgram(page: Page, name: string, buffer: Buffer): Promise<void> {
  // Removes the program shown before.
  await page.evaluate(() => document.querySelector("article")?.remove());
  await open(page, name, buffer);
  await whole(page);
}

/// Waits until all of a program is shown: its advice moves what stands below.
export async function whole(page: Page): Promise<void> {
  await expect(page.locator("article.program:not([aria-busy])")).toBeVisible({ timeout: 60_000 });
}

/// The timeline, once it is drawn: where it is now, and its picture.
export async function timeline(page: Page) {
  await whole(page);
  const frame = page.getByRole("slider", { name: "Moment in the program's order" });
  await frame.scrollIntoViewIfNeeded();
  const canvas = frame.locator("canvas").first();
  const picture = () => canvas.evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  const empty = await page.evaluate(() => document.createElement("canvas").toDataURL());
  await expect.poll(picture).not.toBe(empty);
  const box = async () => (await frame.boundingBox())!;
  return { frame, box, canvas, picture };
}

/// The command line, which the page's answers are held against.
export function commandLine(): string {
  const target = process.env["CARGO_TARGET_DIR"] ?? `${root}/target`;
  const binary = process.env["TILEWISE_BIN"] ?? `${target}/debug/tilewise`;
  if (!existsSync(binary)) throw new Error(`${binary} isn't built: cargo build --package tilewise-cli`);
  return binary;
}

/// Bytes as the page and the command line print them.
export const printed = (bytes: number) => {
  let [value, unit] = [bytes, 0];
  while (value >= 1024) [value, unit] = [value / 1024, unit + 1];
  return unit === 0 ? `${bytes} B` : `${value.toFixed(2)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
};

export { expect };
