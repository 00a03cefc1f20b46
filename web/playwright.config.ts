import { defineConfig } from "@playwright/test";

// Containers have little shared memory.
const flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/// Serves a folder on a port that is free: another run may have its own.
export const served = (folder: string) => ({
  command: `vite preview --outDir ${folder} --host 127.0.0.1 --port 0`,
  wait: { stdout: /127\.0\.0\.1:(?<tilewise_port>\d+)/ },
});

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
    baseURL: `http://127.0.0.1:${process.env["TILEWISE_PORT"]}`,
    // Tests can neither see nor stop the answers of a service worker; those of the worker itself allow it.
    serviceWorkers: "block",
    permissions: ["clipboard-read", "clipboard-write"],
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: flags },
  },
  projects: [
    { name: "tests", testMatch: /.*\.spec\.ts/ },
    { name: "measure", testMatch: /measure\.ts/, workers: 1, fullyParallel: false, retries: 0 },
  ],
  webServer: served("dist"),
});
