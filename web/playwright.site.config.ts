import { defineConfig } from "@playwright/test";
import pages, { served } from "./playwright.config";

// The site that `cargo xtask site` builds.
export default defineConfig({ ...pages, testDir: "site", projects: [{ name: "site" }], webServer: served(process.env["TILEWISE_SITE_OUT"] ?? "../target/site/out") });
