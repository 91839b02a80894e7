/** What the steps of a session left on record: its phases and the versions of its plan, oldest first. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import type { components } from "../api/schema";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { moment, plural } from "../ui/format";
import { OUTCOMES, PHASES } from "./words";

const MOST = 100;

/** `seq` is the number of the session's last event: with it the list is read again. */
export function Milestones({ sessionId, seq }: { sessionId: string; seq: number }) {
  const found = useQuery({
    queryKey: ["artifacts", sessionId, seq],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/sessions/{session_id}/artifacts", {
          params: { path: { session_id: sessionId }, query: { limit: MOST } },
          signal,
        }),
      ),
  });
  if (found.error) return <ErrorNote error={found.error} />;
  const shown = (found.data?.items ?? []).map(said).filter((line) => line !== null);
  if (found.data && shown.length === 0) return <p>{t("Nothing yet.")}</p>;
  return (
    <ol className="bullets">
      {shown.reverse().map((line) => (
        <li key={line.id}>
          {line.text}{" "}
          <small>
            <time dateTime={line.at}>{moment(line.at)}</time>
          </small>
        </li>
      ))}
    </ol>
  );
}

type Item = components["schemas"]["ArtifactView"];

function said(item: Item): { id: string; at: string; text: string } | null {
  const { payload, id, created_at: at } = item;
  if (payload.artifact_type === "milestone") {
    const { milestone_key: key, iteration, detail } = payload.milestone;
    if (key === "iteration") return { id, at, text: t("Iteration {{n}} begins", { n: iteration + 1 }) };
    const name = key === "acceptance" ? OUTCOMES[detail] : PHASES[key];
    return { id, at, text: t("{{step}}: done", { step: t(name ?? key) }) };
  }
  if (payload.artifact_type === "plan") {
    const counts = payload.operation_counts;
    const changed = counts.created + counts.updated + counts.replaced;
    return { id, at, text: t("Plan: {{entries}}", { entries: plural(changed, "entry changed") }) };
  }
  return null;
}
