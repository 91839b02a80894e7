/** Cards of a session in its conversation: the approved plan, its tests, its figures, the summary. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { api, dataOf } from "../api/client";
import type { ApprovedPlan, SessionView } from "../api/types";
import { language, t } from "../i18n";
import { worded } from "../i18n/texts";
import { ErrorNote } from "../ui/ErrorNote";
import { count, dollars, duration, moment } from "../ui/format";
import { Markdown } from "../ui/Markdown";
import { Milestones } from "./Milestones";
import { DeleteSession } from "./SessionHeader";
import { TestList } from "./TestList";
import type { Timeline } from "./timeline";
import { OPERATIONS, PHASES } from "./words";

/** What is known so far, each in a card that opens. */
export function SessionCards({ session, tests }: { session: SessionView; tests: Timeline["tests"] }) {
  const ended = session.status === "completed" || session.status === "cancelled";
  const reviewed = session.interrupt?.type === "result_review";
  return (
    <>
      {session.plan && (
        <Card title={t("Plan")}>
          <PlanSection plan={session.plan} />
        </Card>
      )}
      {tests.length > 0 && !reviewed && (
        <Card title={t("Tests")}>
          <TestList tests={tests} verdict={session.result?.verdict} />
        </Card>
      )}
      {ended && (
        <Card title={t("Summary")}>
          <Summary sessionId={session.thread_id} />
        </Card>
      )}
      <Card title={t("Details")}>
        <Figures session={session} />
        <h3 className="section-title">{t("Milestones")}</h3>
        <Milestones sessionId={session.thread_id} seq={session.last_event_seq} />
        <DeleteSession session={session} />
      </Card>
    </>
  );
}

/** A card of the conversation; what is in it is read when it is opened. */
function Card({ title, children }: { title: string; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="turn-card" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {open && <section aria-label={title}>{children}</section>}
    </details>
  );
}

/** The session's links, counts, cost and times. */
export function Figures({ session }: { session: SessionView }) {
  const { totals } = session;
  const working = Object.values(totals.phase_durations_ms).reduce((sum, one) => sum + one, 0);
  const figures: [string, ReactNode][] = [
    [
      t("Chatflow"),
      session.chatflow_url && (
        <span key="flow" className="row">
          {session.chatflow_id && <Link href={`/f/${session.chatflow_id}/${session.instance}`}>{t("Show")}</Link>}
          <a href={session.chatflow_url} target="_blank" rel="noopener noreferrer">
            {t("Open in Flowise")}
          </a>
        </span>
      ),
    ],
    [
      t("Versions"),
      session.chatflow_id && (
        <Link key="versions" href={`/history/${session.chatflow_id}`}>
          {t("History")}
        </Link>
      ),
    ],
    [t("Flowise server"), session.instance],
    [t("Operation"), session.operation_mode && t(OPERATIONS[session.operation_mode] ?? session.operation_mode)],
    [t("Iterations"), session.iteration + 1],
    [
      t("Tokens"),
      totals.model_calls
        ? t("{{input}} in ({{cached}} cached), {{output}} out", {
            input: count(totals.input_tokens),
            cached: count(totals.cached_tokens),
            output: count(totals.output_tokens),
          })
        : null,
    ],
    [t("Cost"), totals.model_calls ? dollars(totals.usd) : null],
    [t("Model calls"), totals.model_calls],
    [t("Flowise calls"), totals.flowise_calls],
    [t("Working time"), working > 0 ? duration(working) : null],
    [t("Updated"), moment(session.updated_at)],
    [t("Session id"), <code key="id">{session.thread_id}</code>],
  ];
  return (
    <div className="stack">
      <dl className="facts">
        {figures
          .filter(([, value]) => value !== null && value !== undefined && value !== "")
          .map(([name, value]) => (
            <div key={name} className="fact">
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </div>
  );
}

/** That another engine than the configured one has answered; it is read before the plan is approved. */
export function FallbackNotice({ session }: { session: SessionView }) {
  if (session.degraded.length === 0) return null;
  return (
    <div className="note warn">
      <p>{t("In these phases the configured reasoning mode failed, and the other mode answered:")}</p>
      <ul>
        {session.degraded.map((one) => (
          <li key={one.phase}>
            {t(PHASES[one.phase] ?? one.phase)}: {worded(one, "fallback_reason")}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The plan that the person approved. */
export function PlanSection({ plan }: { plan: ApprovedPlan }) {
  return (
    <div className="stack">
      {plan.approach && (
        <p>
          {t("Approach:")} <strong>{plan.approach}</strong>
        </p>
      )}
      <Markdown text={plan.text || t("The plan was too long to store.")} level={2} links={false} />
    </div>
  );
}

/** The session on one page, to hand to a colleague. */
export function Summary({ sessionId }: { sessionId: string }) {
  const { data, error } = useQuery({
    queryKey: ["summary", sessionId, language()],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/sessions/{session_id}/summary", {
          params: { path: { session_id: sessionId }, query: { language: language() } },
          signal,
        }),
      ),
  });
  if (!data) return error ? <ErrorNote error={error} /> : <p className="quiet">{t("Loading the summary…")}</p>;
  // A text is the HTML that a browser gets for the address itself; nothing here asks for it.
  const summary = typeof data === "string" ? data : data.summary;
  return <Markdown text={summary} level={2} />;
}
