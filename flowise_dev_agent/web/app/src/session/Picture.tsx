import type { SessionView } from "../api/types";
import { SessionDiff } from "../flow/FlowDiff";
import { t } from "../i18n";

/** The flow as the session has it. */
export function Picture({ session, drawn }: { session: SessionView; drawn: boolean }) {
  if (drawn) return <SessionDiff sessionId={session.thread_id} revision={session.last_event_seq} />;
  return (
    <div className="empty-picture">
      <p>{t("The picture appears with the plan.")}</p>
    </div>
  );
}
