import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { Problem } from "./api/client";
import "@xyflow/react/dist/style.css";
import "./theme.css";
import "./ui/ui.css";

const queries = new QueryClient({
  defaultOptions: {
    // Offline, a call fails with words; it is not kept back to be sent at some later moment.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      // A problem is an answer; only a lost connection is worth another try.
      retry: (failures, error) => !(error instanceof Problem) && failures < 3,
      staleTime: 2_000,
    },
  },
});

// The service was updated under an open tab: the files of the old page are gone, the new page has others.
window.addEventListener("vite:preloadError", () => {
  if (navigator.onLine) location.reload();
});

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
