import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { Problem } from "./api/client";
import { speak } from "./i18n";
import type { Language } from "./i18n/language";
import { earlyTyping } from "./ui/earlyTyping";
import { keepFocus } from "./ui/keepFocus";

const queries = new QueryClient({
  defaultOptions: {
    // Offline, a call fails at once; it is not queued for later.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      // A Problem is final; only a lost connection is retried.
      retry: (failures, error) => !(error instanceof Problem) && failures < 3,
      staleTime: 2_000,
    },
  },
});

/** Draw the page in place of its head start. */
export async function draw(language: Language): Promise<void> {
  await speak(language);
  const root = document.getElementById("root");
  if (!root) return;
  const goOnTyping = earlyTyping();
  // At once, so that no key is pressed between what was typed and what is drawn.
  flushSync(() =>
    createRoot(root).render(
      <StrictMode>
        <QueryClientProvider client={queries}>
          <App />
        </QueryClientProvider>
      </StrictMode>,
    ),
  );
  goOnTyping();
  keepFocus(root);
}
