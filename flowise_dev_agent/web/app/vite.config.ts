import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// What `npm run dev` forwards to a running service.
const API = /^\/(sessions|deliveries|patterns|instances|flows|knowledge|settings|health|live|openapi\.json)/;
/** The libraries that every view needs. */
const SHARED =
  /node_modules\/(react|react-dom|scheduler|@tanstack|wouter|regexparam|use-sync-external-store|i18next|openapi-fetch)\//;
/** Smaller files are sent as they are. */
const LEAST_BYTES = 1_000;
/** What the page needs before it can draw anything: it is asked for at once, not one after the other. */
const FIRST = ["main"];

/** Areas of the catalogue in which the service writes whole documents: the page gets them said, not their codes. */
const SAID = /^(summary|plan\.(criterion|goal|heading|purpose|step|test))\./;

/** Leaves out of the service's texts what the page never says. */
function ownTexts(): Plugin {
  return {
    name: "own-texts",
    enforce: "pre",
    transform(code, id) {
      if (!/\/texts\/\w+\.json$/.test(id)) return undefined;
      const kept = Object.entries(JSON.parse(code) as Record<string, string>).filter(([key]) => !SAID.test(key));
      return JSON.stringify(Object.fromEntries(kept));
    },
  };
}

/** Puts the texts of the page's head start into it, in each language, and names what is loaded first. */
function headStart(): Plugin {
  return {
    name: "head-start",
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle }) {
        const words = (language: string) =>
          JSON.parse(readFileSync(`src/i18n/${language}.json`, "utf8")) as Record<string, string>;
        const files = { de: words("de"), fr: words("fr"), es: words("es") };
        const spoken = html.replace(/<t>(.*?)<\/t>/g, (_, text: string) =>
          [`<span lang="en">${text}</span>`]
            .concat(Object.entries(files).map(([tag, file]) => `<span lang="${tag}">${file[text] ?? text}</span>`))
            .join(""),
        );
        const wanted = new Set<string>();
        const want = (name: string) => {
          const chunk = bundle?.[name];
          if (chunk?.type !== "chunk" || chunk.isEntry || wanted.has(name)) return;
          wanted.add(name);
          chunk.imports.forEach(want);
        };
        for (const chunk of Object.values(bundle ?? {}))
          if (chunk.type === "chunk" && FIRST.includes(chunk.name)) want(chunk.fileName);
        return {
          html: spoken.replace('<script type="module"', '<script type="module" blocking="render"'),
          tags: [...wanted].map((name) => ({
            tag: "link",
            attrs: { rel: "modulepreload", crossorigin: true, href: `./${name}` },
            injectTo: "head" as const,
          })),
        };
      },
    },
  };
}

/** Compresses what is served, once. */
function packed(): Plugin {
  return {
    name: "packed",
    writeBundle({ dir = "" }, bundle) {
      for (const name of Object.keys(bundle)) {
        const path = join(dir, name);
        const content = readFileSync(path);
        if (content.length < LEAST_BYTES && !name.endsWith(".html")) continue;
        const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
        writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  // The page may be under a path of its proxy: everything is found from where it is.
  base: "./",
  plugins: [ownTexts(), react(), headStart(), packed()],
  resolve: { alias: { "@radix-ui/react-dialog": join(import.meta.dirname, "src/ui/noDialog.ts") } },
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2023",
    // The service's CSP allows no inline script and no data: font; everything is a file of its own.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // tests/unit/web/test_built_page.py holds the sizes, compressed and by what is loaded first.
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      // A dynamic import keeps a part that several views share out of what is loaded first: it is not ineffective.
      checks: { pluginTimings: false, ineffectiveDynamicImport: false },
      // One file instead of several small ones, which take longer on a slow line.
      output: {
        codeSplitting: {
          groups: [
            // The start page has the thumbnails: with their styles in another file it would load that one whole.
            { name: "flow", test: /src\/flow\/flow\.css$/ },
            { name: "base", test: SHARED },
            { name: "parts", test: /src\/ui\//, minShareCount: 4 },
            // What several views share, without libraries: small files compress badly.
            {
              name: "work",
              test: /src\/(flow|session|sessions)\/(?!arrange|readable|stepText)\w+\.ts$/,
              minShareCount: 2,
            },
            {
              name: "shown",
              test: /src\/(flow|session)\/(?!FlowThumbnail|icons|MarkBadge|ReachButton|PlainOperation)\w+\.tsx$/,
              minShareCount: 2,
            },
            { name: "admin", test: /src\/admin\// },
          ],
        },
      },
      // A package that is not installed would else become an import that no browser can follow.
      onLog(level, log, handle) {
        if (log.code === "UNRESOLVED_IMPORT") throw new Error(log.message);
        handle(level, log);
      },
    },
  },
  server: { fs: { allow: [".", "../../texts"] }, proxy: { [API.source]: "http://127.0.0.1:8000" } },
  test: { environment: "jsdom", testTimeout: 20_000, include: ["src/**/*.test.{ts,tsx}"], isolate: false },
});
