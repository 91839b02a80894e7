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
    queries: {
      // A problem is an answer; only a lost connection is worth another try.
      retry: (failures, error) => !(error instanceof Problem) && failures < 3,
      staleTime: 2_000,
    },
  },
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
