// The page that reports are made of: one file, its script and style inside.
import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

/// Nothing is asked for, and no script runs but the report's own.
const policy = (script: string) =>
  `default-src 'none'; script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;

function inline(): Plugin {
  return {
    name: "inline",
    enforce: "post",
    generateBundle(_, bundle) {
      const page = bundle["report.html"];
      if (page?.type !== "asset") throw new Error("no report.html");
      let html = String(page.source);
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const text = file.type === "chunk" ? file.code : String(file.source);
        const tag = name.endsWith(".css") ? /<link rel="stylesheet"[^>]*>/ : /<script type="module"[^>]*><\/script>/;
        const script = text.trim().replaceAll("</script", "<\\/script");
        const element = name.endsWith(".css") ? `<style>${text.trim()}</style>` : `<script type="module">${script}</script>`;
        if (!name.endsWith(".css")) html = html.replace("{{policy}}", () => policy(script));
        const without = html.replace(tag, "");
        // Behind the data that it reads.
        html = name.endsWith(".css")
          ? html.replace(tag, () => element)
          : without.replace("</body>", () => `${element}\n</body>`);
        delete bundle[name];
      }
      page.source = html;
    },
  };
}

export default defineConfig({
  plugins: [inline()],
  build: {
    target: "es2022",
    outDir: "build",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: { input: "report.html" },
  },
});
