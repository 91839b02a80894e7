import type { ReactNode } from "react";
import { Link } from "wouter";
import type { SessionView } from "../api/types";
import { count, dollars, duration, moment } from "../ui/format";

/** What is known about the session in figures. */
export function Facts({ session }: { session: SessionView }) {
  const { totals } = session;
  const work = Object.values(totals.phase_durations_ms ?? {}).reduce((sum, one) => sum + one, 0);
  const facts: [string, ReactNode][] = [
    [
      "Chatflow",
      session.chatflow_url && (
        <a href={session.chatflow_url} target="_blank" rel="noopener noreferrer">
          Open in Flowise
        </a>
      ),
    ],
    ["Versions", session.chatflow_id && <VersionLinks key="versions" session={session} />],
    ["Flowise server", session.instance],
    ["Kind", session.operation_mode],
    ["Rounds", session.iteration + 1],
    [
      "Tokens",
      totals.model_calls
        ? `${count(totals.input_tokens)} in (${count(totals.cached_tokens)} cached), ${count(totals.output_tokens)} out`
        : null,
    ],
    ["Cost", totals.model_calls ? dollars(totals.usd) : null],
    ["Model calls", totals.model_calls],
    ["Calls to Flowise", totals.flowise_calls],
    ["Time at work", work > 0 ? duration(work) : null],
    ["Last change", moment(session.updated_at)],
    ["Session id", <code key="id">{session.thread_id}</code>],
  ];
  const degraded = session.degraded as { phase?: string; fallback_reason?: string }[];
  return (
    <div className="stack">
      <dl className="facts">
        {facts
          .filter(([, value]) => value !== null && value !== undefined && value !== "")
          .map(([name, value]) => (
            <div key={name} className="fact">
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {degraded.length > 0 && (
        <div className="note warn">
          <p>In these phases the first way of reasoning failed and the other one answered:</p>
          <ul>
            {degraded.map((one) => (
              <li key={one.phase}>
                {one.phase}: {one.fallback_reason}
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function VersionLinks({ session }: { session: SessionView }) {
  return (
    <>
      <Link href={`/versions/${session.thread_id}`}>Of this session</Link>,{" "}
      <Link href={`/history/${session.chatflow_id}`}>all of the chatflow</Link>
    </>
  );
}
