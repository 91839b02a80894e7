import { EventSourceParserStream } from "eventsource-parser/stream";
import { api, Problem } from "./client";
import type { SessionEvent } from "./types";

/** State of the connection to a session's stream. */
export type Connection = "connecting" | "live" | "lost" | "ended";

interface Listener {
  onEvent: (event: SessionEvent) => void;
  onConnection: (connection: Connection) => void;
}

/** Silence after which a connection counts as lost; the service sends comments much more often. */
const SILENCE_MS = 60_000;
const RETRY_MS = 2_000;
const MAX_RETRY_MS = 15_000;

/**
 * All events of a session after number `seq`, until `done` or until `signal` aborts. A lost connection is resumed
 * after the last event. Throws Problem when the service refuses, for example after the session was deleted.
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
    pause = Math.min(pause * 2, MAX_RETRY_MS);
  }
}

/** Events of one connection; ends or throws when it is lost. */
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
  // Going offline does not close the connection by itself.
  window.addEventListener("offline", cut);
  try {
    const { data: stream } = await api.GET("/sessions/{session_id}/stream", {
      params: { path: { session_id: sessionId }, header: last ? { "last-event-id": last } : {} },
      parseAs: "stream",
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (!stream) return;
    onOpen();
    const frames = stream
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

/** Wait for this time, or until the machine is online again. */
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
