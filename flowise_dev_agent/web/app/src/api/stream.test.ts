import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Connection, follow } from "./stream";

const encoder = new TextEncoder();
const frame = (seq: number | null, type: string) =>
  `${seq === null ? "" : `id: ${seq}\n`}event: ${type}\ndata: ${JSON.stringify({ seq, type, data: {} })}\n\n`;

/** A body that arrives in these pieces and then ends. */
const body = (...pieces: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(encoder.encode(piece));
      controller.close();
    },
  });

let calls: Headers[] = [];
beforeEach(() => {
  calls = [];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Answer one request after the other. */
function serve(...answers: ((signal: AbortSignal) => Response)[]): void {
  vi.stubGlobal("fetch", async (request: Request) => {
    calls.push(request.headers);
    const answer = answers.shift();
    if (!answer) throw new TypeError("no connection");
    return answer(request.signal);
  });
}

async function collect(signal = new AbortController().signal) {
  const types: string[] = [];
  const connections: Connection[] = [];
  const followed = follow(
    "s1",
    0,
    { onEvent: (one) => types.push(one.type), onConnection: (one) => connections.push(one) },
    signal,
  );
  followed.catch(() => {});
  await vi.runAllTimersAsync();
  return { types, connections, followed };
}

it("resumes a lost stream after the last event", async () => {
  const whole = frame(1, "node_start") + frame(null, "token");
  serve(
    // Cut in the middle of a frame, in pieces other than frames.
    () => new Response(body(whole.slice(0, 20), whole.slice(20), frame(2, "node_end").slice(0, 15))),
    () => new Response(body(frame(2, "node_end"), frame(3, "done"))),
  );
  const { types, connections, followed } = await collect();
  await followed;
  expect(types).toEqual(["node_start", "token", "node_end", "done"]);
  expect(connections).toEqual(["connecting", "live", "lost", "live", "ended"]);
  expect(calls.map((headers) => headers.get("Last-Event-ID"))).toEqual([null, "1"]);
});

it("reconnects when the service is back", async () => {
  serve(
    () => {
      throw new TypeError("no connection");
    },
    () => new Response(JSON.stringify({ detail: "Stopping." }), { status: 503 }),
    () => new Response(body(frame(1, "done"))),
  );
  const { types, followed } = await collect();
  await followed;
  expect(types).toEqual(["done"]);
});

it("reconnects when the network is back", async () => {
  serve(
    // This one does not end: the network is lost, not the service.
    (signal) =>
      new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(encoder.encode(frame(1, "node_start")));
            signal.addEventListener("abort", () => controller.error(signal.reason));
          },
        }),
      ),
    () => new Response(body(frame(2, "done"))),
  );
  const types: string[] = [];
  const listener = { onEvent: (one: { type: string }) => types.push(one.type), onConnection: () => {} };
  const followed = follow("s1", 0, listener, new AbortController().signal);
  await vi.advanceTimersByTimeAsync(100);
  window.dispatchEvent(new Event("offline"));
  await vi.advanceTimersByTimeAsync(100);
  expect(calls).toHaveLength(1);
  window.dispatchEvent(new Event("online"));
  await followed;
  expect(types).toEqual(["node_start", "done"]);
  expect(calls[1]?.get("Last-Event-ID")).toBe("1");
});

it("stops when the session was deleted", async () => {
  serve(
    () => new Response(JSON.stringify({ detail: "Session not found.", code: "session_not_found" }), { status: 404 }),
  );
  const { followed } = await collect();
  await expect(followed).rejects.toMatchObject({ status: 404, message: "Session not found." });
  expect(calls).toHaveLength(1);
});

it("ends without an error when aborted", async () => {
  const abort = new AbortController();
  serve(() => new Response(body(frame(1, "node_start"))));
  const { followed } = await (async () => {
    const types: string[] = [];
    const followed = follow("s1", 0, { onEvent: (one) => types.push(one.type), onConnection: () => {} }, abort.signal);
    await vi.advanceTimersByTimeAsync(100);
    abort.abort();
    return { followed };
  })();
  await expect(followed).resolves.toBeUndefined();
});
