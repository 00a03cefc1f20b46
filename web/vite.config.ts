import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

/// The service worker, with the names of all files that are built: it keeps them once the page is at rest.
function offline(): Plugin {
  return {
    name: "offline",
    apply: "build",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = ["./", ...Object.keys(bundle).filter((name) => name !== "index.html")];
      const contents = Object.values(bundle).map((file) => (file.type === "chunk" ? file.code : file.source));
      const hash = createHash("sha256");
      for (const content of contents) hash.update(content);
      const source = readFileSync("src/offline.worker.js", "utf8");
      const made = source.replace("{{version}}", hash.digest("hex").slice(0, 16)).replace('"{{files}}"', JSON.stringify(files));
      this.emitFile({ type: "asset", fileName: "offline.js", source: made });
    },
  };
}

export default defineConfig({
  // The folder may lie anywhere on a host.
  base: "./",
  // A missing file gives 404, in tests as on a host.
  appType: "mpa",
  plugins: [offline()],
  build: { target: "es2022", assetsInlineLimit: 0, chunkSizeWarningLimit: 2000 },
  worker: { format: "es" },
  server: { fs: { allow: [".."] } },
});
