import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { getSession } from "../api/sessions";
import { type Connection, follow } from "../api/stream";
import type { SessionEvent, SessionView } from "../api/types";

/** Events that arrive together are drawn together. */
const DRAW_EVERY_MS = 80;
/** Read the session again now and then while it works, should a notification be lost. */
const WORKING_MS = 15_000;
const TEXT_SHOWN = 4_000;
/** Events after which the session itself says something new. */
const SETTLING = new Set(["interrupt", "done", "error", "node_start", "write", "cost"]);

export const sessionKey = (id: string) => ["session", id] as const;

/** The session from GET, always; from it alone the page can be drawn after a reload. */
export function useSession(id: string) {
  return useQuery({
    queryKey: sessionKey(id),
    queryFn: () => getSession(id),
    refetchInterval: (query) => (query.state.data?.status === "in_progress" ? WORKING_MS : false),
  });
}

export interface Feed {
  /** All stored events so far. */
  events: SessionEvent[];
  /** What the model is writing at the moment. */
  text: string;
  connection: Connection;
  error: unknown;
}

/** The session's events from the first on, live; keeps `useSession` up to date. */
export function useFeed(id: string): Feed {
  const queries = useQueryClient();
  const [feed, setFeed] = useState<Feed>({ events: [], text: "", connection: "connecting", error: null });
  const pending = useRef<SessionEvent[]>([]);

  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    pending.current = [];
    setFeed({ events: [], text: "", connection: "connecting", error: null });

    const draw = () => {
      timer = 0;
      const arrived = pending.current;
      pending.current = [];
      setFeed((before) => ({ ...before, ...added(before, arrived) }));
      const known = queries.getQueryData<SessionView>(sessionKey(id))?.last_event_seq ?? 0;
      if (arrived.some((event) => SETTLING.has(event.type) && (event.seq ?? 0) > known)) {
        void queries.invalidateQueries({ queryKey: sessionKey(id) });
      }
    };
    const onEvent = (event: SessionEvent) => {
      pending.current.push(event);
      timer ||= window.setTimeout(draw, DRAW_EVERY_MS);
    };
    const onConnection = (connection: Connection) => setFeed((before) => ({ ...before, connection }));
    follow(id, 0, { onEvent, onConnection }, abort.signal).catch((error: unknown) => {
      if (!abort.signal.aborted) setFeed((before) => ({ ...before, connection: "ended", error }));
    });
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, [id, queries]);
  return feed;
}

function added(before: Feed, arrived: SessionEvent[]): Pick<Feed, "events" | "text"> {
  let text = before.text;
  const stored: SessionEvent[] = [];
  for (const event of arrived) {
    if (event.type === "token") text += String(event.data.text ?? "");
    // A new step or a new try begins a new text.
    else if (["node_start", "node_end", "node_error", "retry", "fallback"].includes(event.type)) text = "";
    if (event.seq !== null) stored.push(event);
  }
  return { events: stored.length ? [...before.events, ...stored] : before.events, text: text.slice(-TEXT_SHOWN) };
}
