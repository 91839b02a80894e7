import { EventSourceParserStream } from "eventsource-parser/stream";
import { Problem, request } from "./client";
import type { SessionEvent } from "./types";

/** How the page stands with a session's stream. */
export type Connection = "connecting" | "live" | "lost" | "ended";

interface Listener {
  onEvent: (event: SessionEvent) => void;
  onConnection: (connection: Connection) => void;
}

/** Silence after which a connection counts as dead; the service sends a comment far more often. */
const SILENCE_MS = 60_000;
const RETRY_MS = 2_000;
const RETRY_MOST_MS = 15_000;

/**
 * All events of a session after number `seq`, until `done` or until `signal` aborts. A cut connection is taken up
 * again where it was cut. Throws Problem when the service refuses (the session was deleted).
 */
export async function follow(sessionId: string, seq: number, listener: Listener, signal: AbortSignal): Promise<void> {
  let last = seq;
  let pause = RETRY_MS;
  listener.onConnection("connecting");
  while (!signal.aborted) {
    try {
      for await (const event of read(sessionId, last, signal, () => {
        pause = RETRY_MS;
        listener.onConnection("live");
      })) {
        if (event.seq !== null) last = event.seq;
        listener.onEvent(event);
        if (event.type === "done") {
          listener.onConnection("ended");
          return;
        }
      }
    } catch (error) {
      if (error instanceof Problem && error.status < 500) throw error;
    }
    if (signal.aborted) return;
    listener.onConnection("lost");
    await until(pause, signal);
    pause = Math.min(pause * 2, RETRY_MOST_MS);
  }
}

/** One connection's events; ends or throws when it is cut. */
async function* read(
  sessionId: string,
  last: number,
  signal: AbortSignal,
  onOpen: () => void,
): AsyncGenerator<SessionEvent> {
  const silence = new AbortController();
  const cut = () => silence.abort();
  let timer = 0;
  const heard = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(cut, SILENCE_MS);
  };
  heard();
  // A network that is gone does not close the connection: the other side would never hear of it.
  window.addEventListener("offline", cut);
  try {
    const response = await request(`/sessions/${sessionId}/stream`, {
      headers: last ? { "Last-Event-ID": String(last) } : {},
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (!response.body) return;
    onOpen();
    const frames = response.body
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
      .pipeThrough(new EventSourceParserStream({ onComment: heard }))
      .getReader();
    for (;;) {
      const { done, value } = await frames.read();
      if (done) return;
      heard();
      yield JSON.parse(value.data) as SessionEvent;
    }
  } finally {
    window.removeEventListener("offline", cut);
    window.clearTimeout(timer);
  }
}

/** Waits, but no longer than until the machine is online again. */
function until(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      window.clearTimeout(timer);
      window.removeEventListener("online", go);
      signal.removeEventListener("abort", go);
      resolve();
    };
    const timer = window.setTimeout(go, milliseconds);
    window.addEventListener("online", go);
    signal.addEventListener("abort", go);
  });
}
