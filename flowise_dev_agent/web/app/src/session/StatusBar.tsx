import { useEffect, useRef, useState } from "react";
import type { Connection } from "../api/stream";
import type { SessionView } from "../api/types";
import { t } from "../i18n";
import { duration } from "../ui/format";
import { focusIsFree } from "../ui/keepFocus";
import { Markdown } from "../ui/Markdown";
import { NoticeButton } from "../ui/NoticeButton";
import { currentActivity, type Timeline } from "./timeline";
import { statusWord } from "./words";

/** After that people turn to something else, and may want to be called back. */
const PATIENCE_MS = 4_000;

interface Props {
  session: SessionView;
  timeline: Timeline;
  /** What a model is writing, in a sentence; empty for nothing that can be told. */
  writing: string;
  connection: Connection;
}

/** What the session does now; a screen reader announces each change. */
export function StatusBar({ session, timeline, writing, connection }: Props) {
  const working = session.status === "in_progress";
  const line = useRef<HTMLParagraphElement>(null);
  const asks = session.interrupt !== null;
  const asked = useRef(asks);

  // The answered form is gone and took the focus with it.
  useEffect(() => {
    if (asked.current && !asks && focusIsFree()) line.current?.focus();
    asked.current = asks;
  }, [asks]);

  const words = working ? `${writing || currentActivity(timeline)}…` : statusSentence(session);
  return (
    // The open question speaks for itself; a screen reader hears that it has come.
    <div className={asks && connection !== "lost" ? "visually-hidden" : working ? "now live" : "now"}>
      <div className={asks ? "visually-hidden" : "row apart"}>
        <p aria-live="polite" className="row" ref={line} tabIndex={-1}>
          {working && <span className="pulse" aria-hidden="true" />}
          <span>{words}</span>
        </p>
        {working && timeline.running && <Elapsed key={timeline.running.seq} since={timeline.running.since} />}
      </div>
      {session.status === "completed" && session.answer && <Markdown text={session.answer} />}
      {connection === "lost" && (
        <p role="status" className="problem">
          {t("Connection lost. Reconnecting; the session continues.")}
        </p>
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
  const passed = Math.max(0, now - Date.parse(since));
  return (
    <>
      {passed > PATIENCE_MS && <NoticeButton />}
      <small aria-hidden="true">{duration(passed)}</small>
    </>
  );
}

function statusSentence(session: SessionView): string {
  switch (session.status) {
    case "pending_interrupt":
      return t("The session is waiting for your answer.");
    case "completed":
      return t("Session ended: {{outcome}}.", { outcome: statusWord("completed", session.outcome).text.toLowerCase() });
    case "cancelled":
      return t("Session cancelled.");
    default:
      return t("Session failed. Retry continues from the last completed step.");
  }
}
