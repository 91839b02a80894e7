import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// What `npm run dev` forwards to a running service.
const API = /^\/(sessions|deliveries|patterns|instances|flows|knowledge|settings|health|live|openapi\.json)/;

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2023",
    // The service's CSP allows no inline script and no data: font; everything is a file of its own.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      // A package that is not installed would else become an import that no browser can follow.
      onLog(level, log, handle) {
        if (log.code === "UNRESOLVED_IMPORT") throw new Error(log.message);
        handle(level, log);
      },
    },
  },
  server: { proxy: { [API.source]: "http://127.0.0.1:8000" } },
  test: { environment: "jsdom", include: ["src/**/*.test.{ts,tsx}"], isolate: false },
});
