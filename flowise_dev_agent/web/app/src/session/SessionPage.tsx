import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import { Problem } from "../api/client";
import { sessionTurns } from "../api/queries";
import { EditingContext, useEdits } from "../flow/edits";
import { HighlightContext, useHighlight } from "../flow/highlight";
import { TryOut } from "../flow/TryOut";
import { TRY_FIELD } from "../flow/tries";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { Conflicts } from "./Conflicts";
import { Live } from "./Live";
import { NextSteps } from "./NextSteps";
import { Elsewhere, QuestionCard, useElsewhere } from "./QuestionCard";
import { FallbackNotice, SessionCards } from "./SessionDetails";
import { SessionHeader } from "./SessionHeader";
import { StatusBar } from "./StatusBar";
import { Story } from "./Story";
import { Earlier, Turns } from "./Turns";
import { timelineOf } from "./timeline";
import { UserMessage } from "./UserMessage";
import { useFeed, useSession } from "./useSession";
import { isNarrow, type View, Workbench } from "./Workbench";
import { writingOf } from "./writing";
import "./session.css";

/** The canvas is the largest part of the page: text is read before it is there. */
const Picture = lazy(() => import("./Picture").then((module) => ({ default: module.Picture })));

export function SessionPage({ params }: { params: Record<string, string> }) {
  const id = params.id ?? "";
  // The key resets all state when the id changes.
  return <SessionById key={id} id={id} />;
}

function SessionById({ id }: { id: string }) {
  const { data: session, error } = useSession(id);
  const feed = useFeed(id);
  const timeline = useMemo(() => timelineOf(feed.events), [feed.events]);
  const writing = useMemo(() => writingOf(feed.text), [feed.text]);
  const question = session?.interrupt ?? null;
  const revision = session && `${session.status} ${question?.id}`;
  const said = useQuery({ ...sessionTurns(id, revision), enabled: Boolean(session) }).data;
  const editing = useEdits(question?.id ?? id);
  const editable =
    question?.type === "result_review" ||
    (question?.type === "plan_approval" && question.options.some((one) => one.value === "approve"));
  const elsewhere = useElsewhere(question?.id ?? null, feed.events);
  const [view, setView] = useState<View>("chat");
  const pointing = useHighlight(() => {
    if (isNarrow()) setView("picture");
  });

  useEffect(() => {
    if (view === "try") document.querySelector<HTMLElement>(TRY_FIELD)?.focus();
  }, [view]);

  if (!session) {
    if (!error) return <p className="quiet">{t("Loading the session…")}</p>;
    const gone = error instanceof Problem && error.status === 404;
    return (
      <ErrorNote error={gone ? { message: t("Session not found. It may have been deleted.") } : error}>
        <p>
          <Link href="/">{t("All sessions")}</Link>
        </p>
      </ErrorNote>
    );
  }

  const draft = question?.type === "result_review" ? question.data.draft : null;
  const testable = draft?.id ?? session.chatflow_id;
  // A flow that is only the target of a change has no text of the session yet.
  const written = Boolean(draft) || (Boolean(session.chatflow_id) && session.interrupt?.type !== "plan_approval");
  const made = session.outcome === "accepted" || session.outcome === "answered" ? session.chatflow_id : null;

  return (
    <EditingContext value={editable ? editing : null}>
      <HighlightContext value={pointing}>
        <Workbench
          view={view}
          onView={setView}
          header={<SessionHeader session={session} onTry={testable ? () => setView("try") : null} />}
          talk={
            <>
              {session.chatflow_id && (
                <Earlier chatflowId={session.chatflow_id} instance={session.instance} without={id} />
              )}
              {said ? (
                <Turns turns={said.turns} open={question?.id ?? null} />
              ) : (
                <UserMessage at={session.created_at} words={session.requirement} />
              )}
              {made && session.outcome === "accepted" && <Live chatflowId={made} instance={session.instance} />}
              <Story groups={timeline.groups} ended={feed.connection === "ended"} />
              <SessionCards session={session} tests={timeline.tests.filter((one) => !one.before)} />
              <StatusBar
                session={session}
                timeline={timeline}
                writing={writing.sentence}
                connection={feed.connection}
              />
              <ErrorNote error={feed.error} />
              <Elsewhere notice={session.status === "cancelled" ? null : elsewhere.notice} onClose={elsewhere.close} />
              <FallbackNotice session={session} />
              <Conflicts session={session} />
              {question && (
                <QuestionCard key={question.id} session={session} question={question} onMine={elsewhere.mark} />
              )}
              {made && (
                <NextSteps
                  chatflowId={made}
                  instance={session.instance}
                  url={session.chatflow_url}
                  onTry={() => setView("try")}
                />
              )}
            </>
          }
          picture={
            <Suspense fallback={<div className="empty-picture" />}>
              <Picture session={session} written={written} coming={writing.nodes} />
            </Suspense>
          }
          tryOut={testable ? <TryOut key={testable} chatflowId={testable} instance={session.instance} /> : null}
        />
      </HighlightContext>
    </EditingContext>
  );
}
