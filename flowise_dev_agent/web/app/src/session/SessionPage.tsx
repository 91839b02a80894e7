import { useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { Problem } from "../api/client";
import { SessionDiff } from "../flow/FlowDiff";
import { TryOut } from "../flow/TryOut";
import { ErrorNote } from "../ui/ErrorNote";
import { Tabs } from "../ui/Tabs";
import { Conflicts } from "./Conflicts";
import { NextSteps } from "./NextSteps";
import { NowBar } from "./NowBar";
import { Elsewhere, QuestionCard, useElsewhere } from "./QuestionCard";
import { ApprovedPlan, FallbackNotice, Figures, Summary } from "./SessionDetails";
import { DeleteSession, SessionHeader } from "./SessionHeader";
import { Story } from "./Story";
import { TestList } from "./TestList";
import { timelineOf } from "./timeline";
import { useFeed, useSession } from "./useSession";
import "./session.css";

export function SessionPage({ params }: { params: Record<string, string> }) {
  const id = params.id ?? "";
  // The key resets all state when the id changes.
  return <SessionById key={id} id={id} />;
}

function SessionById({ id }: { id: string }) {
  const { data: session, error } = useSession(id);
  const feed = useFeed(id);
  const timeline = useMemo(() => timelineOf(feed.events), [feed.events]);
  const question = session?.interrupt ?? null;
  const elsewhere = useElsewhere(question?.id ?? null, feed.events);
  const about = useRef<HTMLDivElement>(null);
  const [trying, setTrying] = useState(0);

  useEffect(() => {
    if (trying) about.current?.querySelector<HTMLElement>(".try-out input")?.focus();
  }, [trying]);

  if (!session) {
    if (!error) return <p className="quiet">Loading the session…</p>;
    const gone = error instanceof Problem && error.status === 404;
    return (
      <ErrorNote error={gone ? { message: "Session not found. It may have been deleted." } : error}>
        <p>
          <Link href="/">All sessions</Link>
        </p>
      </ErrorNote>
    );
  }

  const review = question?.type === "result_review" ? question : null;
  const draft = review?.data.draft ?? null;
  // This form shows the change itself.
  const shownInForm = question?.type === "patch_review" && question.reason !== "budget";
  const testable = draft?.id ?? session.chatflow_id;
  const tests = timeline.tests.filter((one) => !one.before);
  const ended = session.status === "completed" || session.status === "cancelled";
  const made = session.outcome === "accepted" || session.outcome === "answered" ? session.chatflow_id : null;
  const tabs = [
    ...((session.chatflow_id || draft) && !shownInForm
      ? [
          {
            name: "Change",
            content: (
              <div className="stack tight">
                <SessionDiff sessionId={id} revision={session.last_event_seq} />
                <Link href={`/change/${id}`}>Show in full width</Link>
              </div>
            ),
          },
        ]
      : []),
    ...(tests.length && !review ? [{ name: "Tests", content: <TestList tests={tests} /> }] : []),
    ...(testable
      ? [
          {
            name: "Try it",
            content: <TryOut key={testable} chatflowId={testable} instance={session.instance} />,
          },
        ]
      : []),
    ...(session.plan ? [{ name: "Plan", content: <ApprovedPlan plan={session.plan} /> }] : []),
    { name: "Details", content: <Figures session={session} /> },
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
          <FallbackNotice session={session} />
          <Conflicts session={session} />
          {question && <QuestionCard key={question.id} session={session} question={question} onMine={elsewhere.mark} />}
          {made && <NextSteps session={session} chatflowId={made} onTry={() => setTrying((times) => times + 1)} />}
          <div className="card" ref={about}>
            <Tabs
              key={trying}
              label="About this session"
              tabs={tabs}
              start={trying ? tabs.findIndex((tab) => tab.name === "Try it") : 0}
            />
          </div>
        </div>
        <Story groups={timeline.groups} ended={feed.connection === "ended"} />
      </div>
      <DeleteSession session={session} />
    </div>
  );
}
