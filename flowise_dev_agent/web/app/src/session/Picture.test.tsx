import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { sessionPreview } from "../api/queries";
import type { Preview, SessionView } from "../api/types";
import { node } from "../flow/sample";
import { Picture } from "./Picture";

beforeEach(() => {
  const Watch = class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
  vi.stubGlobal("ResizeObserver", Watch);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const PREVIEW = {
  source: "plan",
  flow_name: "Zoo",
  kind: "CHATFLOW",
  summary: "1 node added",
  nodes: [
    {
      node: node("chatOpenAI_0"),
      state: "new",
      placed: false,
      purpose: "",
      model: "",
      prompt: "",
      values: [],
      parts: [],
    },
  ],
  edges: [],
  parts: [],
  unconnected: [],
} as unknown as Preview;

/** The picture of a session whose plan was approved. */
function show(status: SessionView["status"]) {
  const queries = new QueryClient();
  queries.setQueryData(sessionPreview("s1", 7).queryKey, PREVIEW);
  const session = { thread_id: "s1", last_event_seq: 7, interrupt: null, plan: {}, status, instance: "default" };
  render(
    <QueryClientProvider client={queries}>
      <Picture session={session as unknown as SessionView} written={false} coming={[]} />
    </QueryClientProvider>,
  );
}

it("says of a failed session that its plan was not built, and of one at work that it is", () => {
  show("error");
  expect(screen.queryByText("Not built")).not.toBeNull();
  cleanup();
  show("in_progress");
  expect(screen.queryByText("Not built")).toBeNull();
  expect(screen.queryByText("Being built")).not.toBeNull();
});
