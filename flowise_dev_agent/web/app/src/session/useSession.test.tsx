import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import type { SessionView } from "../api/types";
import { useElsewhere } from "./QuestionCard";
import { StatusBar } from "./StatusBar";
import { timelineOf } from "./timeline";
import { sessionKey, useFeed } from "./useSession";
import { writingOf } from "./writing";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const frame = (seq: number | null, type: string, data: object = {}) =>
  `data: ${JSON.stringify({ seq, type, node: "plan_v2", phase: "plan", ts: new Date().toISOString(), summary: "", data })}\n\n`;

function Followed({ session }: { session: SessionView }) {
  const feed = useFeed("s1");
  const timeline = timelineOf(feed.events);
  return (
    <StatusBar
      session={session}
      timeline={timeline}
      writing={writingOf(feed.text).sentence}
      connection={feed.connection}
    />
  );
}

function Asked({ open }: { open: string | null }) {
  const { notice, mark } = useElsewhere(open, []);
  return (
    <button type="button" onClick={() => mark("mine", true)}>
      {notice === null ? "quiet" : "lost"}
    </button>
  );
}

/** Render the parts that follow a session; `send` streams events as the service does. */
function follow(session: object) {
  const encoder = new TextEncoder();
  let send: (text: string) => void = () => {};
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      send = (text) => controller.enqueue(encoder.encode(text));
    },
  });
  vi.stubGlobal("fetch", async () => new Response(body));
  const queries = new QueryClient();
  queries.setQueryData(sessionKey("s1"), { last_event_seq: 0, ...session });
  const read = vi.spyOn(queries, "invalidateQueries");
  render(
    <QueryClientProvider client={queries}>
      <Followed session={session as SessionView} />
    </QueryClientProvider>,
  );
  return { send: (text: string) => act(async () => send(text)), read };
}

it("tells what a model writes until the step ends", async () => {
  const { send } = follow({ status: "in_progress" });
  await send(frame(1, "node_start"));
  expect(await screen.findByText("Writing the plan…")).toBeTruthy();
  await send(frame(null, "token", { text: '{"goal": "A bot", "flow_na' }));
  await send(frame(null, "token", { text: 'me": "Bot' }));
  expect(await screen.findByText("Choosing a name…")).toBeTruthy();
  await send(frame(2, "node_end"));
  await vi.waitFor(() => expect(screen.queryByText("Choosing a name…")).toBeNull());
});

it("refreshes the session after new events only", async () => {
  const { send, read } = follow({ status: "in_progress", last_event_seq: 5 });
  await send(frame(5, "interrupt"));
  await vi.waitFor(() => expect(screen.getByText("Waiting for its turn…")).toBeTruthy());
  expect(read).not.toHaveBeenCalled();
  await send(frame(6, "interrupt"));
  await vi.waitFor(() => expect(read).toHaveBeenCalledTimes(1));
});

it("distinguishes an answer given elsewhere from one given here", () => {
  const { rerender } = render(<Asked open="mine" />);
  screen.getByRole("button").click();
  rerender(<Asked open={null} />);
  expect(screen.getByText("quiet")).toBeTruthy();
  rerender(<Asked open="theirs" />);
  rerender(<Asked open={null} />);
  expect(screen.getByText("lost")).toBeTruthy();
});
