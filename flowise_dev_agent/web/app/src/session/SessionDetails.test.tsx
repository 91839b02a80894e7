import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import type { SessionView } from "../api/types";
import { FallbackNotice, Figures } from "./SessionDetails";
import { StatusBar } from "./StatusBar";

afterEach(cleanup);

const SESSION = {
  thread_id: "s1",
  status: "completed",
  outcome: "answered",
  answer: "It has **two** nodes:\n\n- a model\n- a memory",
  instance: "default",
  chatflow_id: "f1",
  chatflow_url: "http://flowise/canvas/f1",
  interrupt: null,
  iteration: 0,
  degraded: [{ phase: "plan", fallback_reason: "The model did not answer." }],
  totals: { phase_durations_ms: {}, model_calls: 0 },
  updated_at: "2026-01-01T10:00:00Z",
} as unknown as SessionView;

it("shows the answer to a question about a flow as Markdown", () => {
  const timeline = { groups: [], tests: [], running: null };
  const { container } = render(<StatusBar session={SESSION} timeline={timeline} writing="" connection="ended" />);
  expect([...container.querySelectorAll("li")].map((one) => one.textContent)).toEqual(["a model", "a memory"]);
});

it("says apart from the figures that another reasoning mode has answered, and links the flow", () => {
  const { container } = render(<FallbackNotice session={SESSION} />);
  expect(container.textContent).toContain("Plan: The model did not answer.");
  cleanup();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Figures session={SESSION} />
    </QueryClientProvider>,
  );
  expect(screen.queryByText(/configured reasoning mode/)).toBeNull();
  expect(screen.getByRole("link", { name: "Show" }).getAttribute("href")).toContain("/f/f1/default");
});
