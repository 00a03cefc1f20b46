import { defineConfig } from "vite";

export default defineConfig({
  // The folder may lie anywhere on a host.
  base: "./",
  build: { target: "es2022", assetsInlineLimit: 0, chunkSizeWarningLimit: 2000 },
  worker: { format: "es" },
  server: { fs: { allow: [".."] } },
});
