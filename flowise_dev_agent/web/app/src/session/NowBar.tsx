import { useEffect, useState } from "react";
import type { Connection } from "../api/stream";
import type { SessionView } from "../api/types";
import { duration } from "../ui/format";
import { nowOf, type Timeline } from "./timeline";
import { statusWord } from "./words";

const TEXT_SHOWN = 600;

interface Props {
  session: SessionView;
  timeline: Timeline;
  text: string;
  connection: Connection;
}

/** What happens at this moment, in words; screen readers are told when it changes. */
export function NowBar({ session, timeline, text, connection }: Props) {
  const working = session.status === "in_progress";
  const words = working ? `${nowOf(timeline)}…` : restOf(session);
  return (
    <div className={working ? "now live" : "now"}>
      <div className="row apart">
        <p aria-live="polite" className="row">
          {working && <span className="pulse" aria-hidden="true" />}
          <span>{words}</span>
        </p>
        {working && timeline.running && <Elapsed key={timeline.running.seq} since={timeline.running.since} />}
      </div>
      {connection === "lost" && (
        <p role="status" className="problem">
          The connection is lost. Trying again; the work goes on meanwhile.
        </p>
      )}
      {working && text && (
        <figure>
          <figcaption className="quiet">The model writes:</figcaption>
          <pre className="tokens" aria-live="off">
            {text.slice(-TEXT_SHOWN)}
          </pre>
        </figure>
      )}
    </div>
  );
}

function Elapsed({ since }: { since: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), 1_000);
    return () => window.clearInterval(timer);
  }, []);
  return <small aria-hidden="true">{duration(Math.max(0, now - Date.parse(since)))}</small>;
}

function restOf(session: SessionView): string {
  switch (session.status) {
    case "pending_interrupt":
      return "It is your turn: the session waits for your answer.";
    case "completed":
      return (
        session.answer ?? `This session has ended: ${statusWord("completed", session.outcome).text.toLowerCase()}.`
      );
    case "cancelled":
      return "This session was cancelled.";
    default:
      return "This session failed. Nothing is lost: it can go on from its last good step.";
  }
}
