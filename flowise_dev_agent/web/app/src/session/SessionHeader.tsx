import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { cancelSession, deleteSession, retrySession } from "../api/sessions";
import type { SessionView } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { NameForm } from "../sessions/NameForm";
import { ShareButton } from "../share/ShareButton";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { StatusBadge } from "../ui/StatusBadge";
import { sessionKey } from "./useSession";

interface Props {
  session: SessionView;
  /** Null while there is no flow to try. */
  onTry: (() => void) | null;
}

/** The session's name and status, and the actions on the whole session. */
export function SessionHeader({ session, onTry }: Props) {
  const queries = useQueryClient();
  const [naming, setNaming] = useState(false);
  const id = session.thread_id;
  const name = session.session_name || t("New session");
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
    <header className="workbench-head">
      <Link href="/" className="back" aria-label={t("All flows")}>
        ←
      </Link>
      {naming ? (
        <NameForm session={session} onRenamed={shows.onSuccess} onClose={() => setNaming(false)} />
      ) : (
        <>
          <h1 title={name}>{name}</h1>
          <StatusBadge session={session} />
          <button type="button" className="button plain menu-button" popoverTarget="session-menu">
            {t("More")}
          </button>
          {/* Part of the bar where there is room for it. */}
          <div id="session-menu" className="menu" popover="auto">
            <button type="button" className="button plain" onClick={() => setNaming(true)}>
              {t("Rename")}
            </button>
            <span className="room" />
            {session.chatflow_id && (
              <Link href={`/history/${session.chatflow_id}`} className="button plain">
                {t("History")}
              </Link>
            )}
            <ShareButton subject="session" id={id} />
            {active && (
              <ConfirmButton
                label={t("Cancel session")}
                look="plain"
                question={t("Cancel this session?")}
                yes={t("Yes, cancel")}
                busy={cancel.isPending}
                onYes={() => cancel.mutate()}
              >
                <p>{t("Changes already written to Flowise stay.")}</p>
              </ConfirmButton>
            )}
          </div>
        </>
      )}
      <div className="actions">
        {onTry && (
          <button type="button" className="button wide" onClick={onTry}>
            {t("Try it")}
          </button>
        )}
        {session.status === "error" && (
          <button type="button" className="button primary" disabled={retry.isPending} onClick={() => retry.mutate()}>
            {t("Retry")}
          </button>
        )}
      </div>
      <ErrorNote error={cancel.error ?? retry.error} />
      {session.error && (
        <ErrorNote error={{ message: worded(session.error, "detail"), hint: worded(session.error, "hint") }} />
      )}
    </header>
  );
}

/** The last and quietest action on a session that does not work any more. */
export function DeleteSession({ session }: { session: SessionView }) {
  const [, go] = useLocation();
  const remove = useMutation({ mutationFn: () => deleteSession(session.thread_id), onSuccess: () => go("/") });
  if (isActive(session)) return null;
  return (
    <footer>
      <ConfirmButton
        label={t("Delete session")}
        look="plain"
        question={t("Delete this session?")}
        yes={t("Delete it")}
        busy={remove.isPending}
        onYes={() => remove.mutate()}
      >
        <p>{t("Its history is deleted too. The chatflow in Flowise stays.")}</p>
      </ConfirmButton>
      <ErrorNote error={remove.error} />
    </footer>
  );
}

const isActive = ({ status }: SessionView): boolean => status === "in_progress" || status === "pending_interrupt";
