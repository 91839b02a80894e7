import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { getSession } from "../api/sessions";
import { type Connection, follow } from "../api/stream";
import type { SessionEvent, SessionView } from "../api/types";

/** Events that arrive within this time are rendered together. */
const RENDER_EVERY_MS = 80;
/** Refresh a working session this often, in case a notification is lost. */
const REFRESH_MS = 15_000;
/** A model's answer is not longer. */
const TEXT_KEPT = 200_000;
/** Events after which the session itself has changed. */
const CHANGES_SESSION = new Set(["interrupt", "done", "error", "node_start", "write", "cost"]);

export const sessionKey = (id: string) => ["session", id] as const;

/** The session, always read by GET, so that a reload shows the same page. */
export function useSession(id: string) {
  return useQuery({
    queryKey: sessionKey(id),
    queryFn: () => getSession(id),
    refetchInterval: (query) => (query.state.data?.status === "in_progress" ? REFRESH_MS : false),
  });
}

export interface Feed {
  /** All stored events so far. */
  events: SessionEvent[];
  /** The current output of the model. */
  text: string;
  connection: Connection;
  error: unknown;
}

/** All events of the session, live; keeps `useSession` up to date. */
export function useFeed(id: string): Feed {
  const queries = useQueryClient();
  const [feed, setFeed] = useState<Feed>({ events: [], text: "", connection: "connecting", error: null });
  const pending = useRef<SessionEvent[]>([]);

  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    pending.current = [];
    setFeed({ events: [], text: "", connection: "connecting", error: null });

    const render = () => {
      timer = 0;
      const arrived = pending.current;
      pending.current = [];
      setFeed((before) => ({ ...before, ...added(before, arrived) }));
      const known = queries.getQueryData<SessionView>(sessionKey(id))?.last_event_seq ?? 0;
      if (arrived.some((event) => CHANGES_SESSION.has(event.type) && (event.seq ?? 0) > known)) {
        void queries.invalidateQueries({ queryKey: sessionKey(id) });
      }
    };
    const onEvent = (event: SessionEvent) => {
      pending.current.push(event);
      timer ||= window.setTimeout(render, RENDER_EVERY_MS);
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
    if (event.type === "token") text += event.data.text;
    // A new step or a new attempt starts a new text.
    else if (["node_start", "node_end", "node_error", "retry", "fallback"].includes(event.type)) text = "";
    if (event.seq !== null) stored.push(event);
  }
  return { events: stored.length ? [...before.events, ...stored] : before.events, text: text.slice(0, TEXT_KEPT) };
}
