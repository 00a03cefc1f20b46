import { defineConfig } from "@playwright/test";
import pages from "./playwright.config";

// The site that `cargo xtask site` builds.
export default defineConfig({
  ...pages,
  testDir: "site",
  projects: [{ name: "site" }],
  use: { ...pages.use, baseURL: "http://127.0.0.1:4175" },
  webServer: {
    command: "vite preview --outDir ../target/site/out --host 127.0.0.1 --port 4175 --strictPort",
    url: "http://127.0.0.1:4175",
  },
});
