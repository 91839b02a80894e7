/** Saves of other people that came right after a write of the session: both texts are kept, and either can be restored. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, dataOf } from "../api/client";
import type { Conflict, SessionView, VersionView } from "../api/types";
import { t } from "../i18n";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { sessionKey } from "./useSession";

export function Conflicts({ session }: { session: SessionView }) {
  const conflicts = session.result?.conflicts ?? [];
  if (conflicts.length === 0) return null;
  return <Kept session={session} conflicts={conflicts} />;
}

function Kept({ session, conflicts }: { session: SessionView; conflicts: Conflict[] }) {
  const id = session.thread_id;
  const queries = useQueryClient();
  const versions = useQuery({
    queryKey: ["versions", "session", id, session.last_event_seq],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/sessions/{session_id}/versions", { params: { path: { session_id: id } }, signal })),
  });
  const restore = useMutation({
    mutationFn: (version: VersionView) =>
      dataOf(
        api.POST("/sessions/{session_id}/rollback", {
          params: { path: { session_id: id }, query: { version: version.label } },
        }),
      ),
    onSuccess: () => {
      for (const queryKey of [["versions"], ["compare"], ["change", id], sessionKey(id)]) {
        void queries.invalidateQueries({ queryKey });
      }
    },
  });
  const ended = session.status !== "in_progress" && session.interrupt === null;

  return (
    <section className="note warn" aria-label={t("Saved by someone else")}>
      {conflicts.map((conflict) => {
        const kept = versions.data?.versions.filter((one) => one.chatflow_id === conflict.chatflow_id) ?? [];
        const ours = kept.findLast((one) => one.sha256 === conflict.ours);
        const theirs = kept.findLast((one) => one.sha256 === conflict.theirs);
        return (
          <div key={`${conflict.ours} ${conflict.theirs}`} className="stack tight">
            <p>
              <strong>{t("Someone else saved the flow right after this session had written it.")}</strong>{" "}
              {t("Their text replaced the session’s text. Both are kept.")}
            </p>
            {versions.data && !(ours && theirs) && <p>{t("A version of it is no longer stored.")}</p>}
            <div className="actions">
              {ended && ours && (
                <Restore
                  version={ours}
                  whose={t("the session’s text")}
                  busy={restore.isPending}
                  onYes={restore.mutate}
                />
              )}
              {ended && theirs && (
                <Restore version={theirs} whose={t("their text")} busy={restore.isPending} onYes={restore.mutate} />
              )}
              <Link className="button" href={`/history/${session.chatflow_id}`}>
                {t("Compare the versions")}
              </Link>
            </div>
          </div>
        );
      })}
      {!ended && <p>{t("You can restore either of them when the session has ended.")}</p>}
      <p role="status">
        {restore.data &&
          (restore.data.already_there
            ? t("The flow already is as {{name}}; nothing was written.", { name: restore.data.label })
            : t("The flow is as {{name}} again, and verified in Flowise.", { name: restore.data.label }))}
      </p>
      <ErrorNote error={versions.error ?? restore.error} />
    </section>
  );
}

interface RestoreProps {
  version: VersionView;
  whose: string;
  busy: boolean;
  onYes: (version: VersionView) => void;
}

function Restore({ version, whose, busy, onYes }: RestoreProps) {
  return (
    <ConfirmButton
      label={t("Restore {{text}}", { text: whose })}
      question={t("Restore {{text}} ({{version}})?", { text: whose, version: version.label })}
      yes={t("Write {{name}} to Flowise", { name: version.label })}
      busy={busy}
      onYes={() => onYes(version)}
    >
      <p>{t("What the flow holds now is saved as a version first, so you can undo this.")}</p>
    </ConfirmButton>
  );
}
