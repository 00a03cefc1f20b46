import { defineConfig } from "@playwright/test";

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export default defineConfig({
  testDir: "tests",
  fullyParallel: true,
  workers: 2,
  // axe looks at every element of a page, those of pictures, too: a minute on a machine that is busy.
  timeout: 120_000,
  expect: { timeout: 20_000 },
  // A browser on a busy machine may be late once. What fails and then passes is listed as flaky.
  retries: 2,
  reporter: "list",
  use: {
    baseURL: "http://127.0.0.1:4174",
    permissions: ["clipboard-read", "clipboard-write"],
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: flags },
  },
  projects: [
    { name: "tests", testMatch: /.*\.spec\.ts/ },
    { name: "measure", testMatch: /measure\.ts/, workers: 1, fullyParallel: false, retries: 0 },
  ],
  webServer: { command: "vite preview --host 127.0.0.1 --port 4174 --strictPort", url: "http://127.0.0.1:4174" },
});
