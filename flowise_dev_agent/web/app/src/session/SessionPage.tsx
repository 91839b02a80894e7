import { useMemo } from "react";
import { Link } from "wouter";
import { Problem } from "../api/client";
import { SessionDiff } from "../flow/SessionDiff";
import { TryOut } from "../flow/TryOut";
import { ErrorNote } from "../ui/ErrorNote";
import { Tabs } from "../ui/Tabs";
import { ApprovedPlan } from "./ApprovedPlan";
import { Elsewhere, useElsewhere } from "./Elsewhere";
import { Facts } from "./Facts";
import { NowBar } from "./NowBar";
import { QuestionCard } from "./QuestionCard";
import type { Question, ResultReview } from "./questions/shapes";
import { SessionHeader } from "./SessionHeader";
import { Story } from "./Story";
import { Summary } from "./Summary";
import { TestList } from "./TestList";
import { timelineOf } from "./timeline";
import { useFeed, useSession } from "./useSession";
import "./session.css";

export function SessionPage({ params }: { params: Record<string, string> }) {
  const id = params.id ?? "";
  // A session of its own for each id: nothing of one may show in another.
  return <SessionById key={id} id={id} />;
}

function SessionById({ id }: { id: string }) {
  const { data: session, error } = useSession(id);
  const feed = useFeed(id);
  const timeline = useMemo(() => timelineOf(feed.events), [feed.events]);
  const question = (session?.interrupt ?? null) as Question | null;
  const elsewhere = useElsewhere(question?.id ?? null, feed.events);

  if (!session) {
    if (!error) return <p className="quiet">Loading the session…</p>;
    const gone = error instanceof Problem && error.status === 404;
    return (
      <ErrorNote error={gone ? { message: "There is no such session. It may have been deleted." } : error}>
        <p>
          <Link href="/">All sessions</Link>
        </p>
      </ErrorNote>
    );
  }

  const review = question?.type === "result_review" ? (question as unknown as Question<ResultReview>) : null;
  const draft = review?.data.draft ?? null;
  // Its form shows the change itself.
  const pictured = question?.type === "patch_review" && question.reason !== "budget";
  const asked = draft?.id ?? session.chatflow_id;
  const tests = timeline.tests
    .filter((one) => !one.before)
    .map((one) => ({ ...one, duration_ms: one.durationMs, error: "", used_tools: [] }));
  const ended = session.status === "completed" || session.status === "cancelled";
  const tabs = [
    ...((session.chatflow_id || draft) && !pictured
      ? [{ name: "Change", content: <SessionDiff sessionId={id} revision={session.last_event_seq} /> }]
      : []),
    ...(tests.length && !review ? [{ name: "Tests", content: <TestList tests={tests} /> }] : []),
    ...(asked
      ? [
          {
            name: "Try it",
            content: <TryOut key={asked} chatflowId={asked} instance={session.instance} />,
          },
        ]
      : []),
    ...(session.plan ? [{ name: "Plan", content: <ApprovedPlan plan={session.plan} /> }] : []),
    { name: "Facts", content: <Facts session={session} /> },
    ...(ended ? [{ name: "Summary", content: <Summary sessionId={id} /> }] : []),
  ];

  return (
    <div className="session">
      <SessionHeader session={session} />
      <div className="session-columns">
        <div className="stack">
          <NowBar session={session} timeline={timeline} text={feed.text} connection={feed.connection} />
          <ErrorNote error={feed.error} />
          <Elsewhere notice={elsewhere.notice} onClose={elsewhere.close} />
          {question && <QuestionCard key={question.id} session={session} question={question} onMine={elsewhere.mark} />}
          <div className="card">
            <Tabs label="About this session" tabs={tabs} />
          </div>
        </div>
        <Story groups={timeline.groups} ended={feed.connection === "ended"} />
      </div>
    </div>
  );
}
