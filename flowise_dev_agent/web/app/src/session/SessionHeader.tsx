import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { cancelSession, deleteSession, retrySession } from "../api/sessions";
import type { SessionView } from "../api/types";
import { NameForm } from "../sessions/NameForm";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { moment } from "../ui/format";
import { StatusBadge } from "../ui/StatusBadge";
import { sessionKey } from "./useSession";

/** The session's name and status, and the actions on the whole session. */
export function SessionHeader({ session }: { session: SessionView }) {
  const queries = useQueryClient();
  const [naming, setNaming] = useState(false);
  const id = session.thread_id;
  const name = session.session_name || "New session";
  const shows = { onSuccess: (view: SessionView) => queries.setQueryData(sessionKey(id), view) };
  const cancel = useMutation({ mutationFn: () => cancelSession(id), ...shows });
  const retry = useMutation({ mutationFn: () => retrySession(id), ...shows });
  const active = isActive(session);

  useEffect(() => {
    const waits = session.status === "pending_interrupt" ? "● " : "";
    document.title = `${waits}${name} · Flowise Dev Agent`;
    return () => {
      document.title = "Flowise Dev Agent";
    };
  }, [name, session.status]);

  return (
    <header className="stack tight">
      <Link href="/" className="back">
        ← Sessions
      </Link>
      <div className="row apart">
        {naming ? (
          <NameForm session={session} onRenamed={shows.onSuccess} onClose={() => setNaming(false)} />
        ) : (
          <div className="row">
            <h1 className="words">{name}</h1>
            <StatusBadge session={session} />
            <button type="button" className="button plain" onClick={() => setNaming(true)}>
              Rename
            </button>
          </div>
        )}
        <div className="actions">
          {(session.plan || session.interrupt?.type === "plan_approval") && (
            <Link href={`/build/${id}`} className="button plain">
              Open as form
            </Link>
          )}
          {session.status === "error" && (
            <button type="button" className="button primary" disabled={retry.isPending} onClick={() => retry.mutate()}>
              Retry
            </button>
          )}
          {active && (
            <ConfirmButton
              label="Cancel session"
              question="Cancel this session?"
              yes="Yes, cancel"
              busy={cancel.isPending}
              onYes={() => cancel.mutate()}
            >
              <p>Changes already written to Flowise stay.</p>
            </ConfirmButton>
          )}
        </div>
      </div>
      <blockquote className="requirement words">{session.requirement}</blockquote>
      <small>Started {moment(session.created_at)}</small>
      <ErrorNote error={cancel.error ?? retry.error} />
      {session.error && <ErrorNote error={{ message: session.error.detail, hint: session.error.hint }} />}
    </header>
  );
}

/** The last thing on the page of a session that does not work any more. */
export function DeleteSession({ session }: { session: SessionView }) {
  const [, go] = useLocation();
  const remove = useMutation({ mutationFn: () => deleteSession(session.thread_id), onSuccess: () => go("/") });
  if (isActive(session)) return null;
  return (
    <footer>
      <ConfirmButton
        label="Delete session"
        look="plain"
        question="Delete this session?"
        yes="Delete it"
        busy={remove.isPending}
        onYes={() => remove.mutate()}
      >
        <p>Its history is deleted too. The chatflow in Flowise stays.</p>
      </ConfirmButton>
      <ErrorNote error={remove.error} />
    </footer>
  );
}

const isActive = ({ status }: SessionView): boolean => status === "in_progress" || status === "pending_interrupt";
