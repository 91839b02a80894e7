import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import type { KnowledgeView as Knowledge, KnowledgeList, RefreshView } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, duration, plural } from "../ui/format";
import "./admin.css";

const KEY = ["knowledge"];
const STEPS: Record<string, string> = { nodes: "node types", templates: "templates", credentials: "credentials" };

/** What the service knows about each server, how old it is, and a button to refresh it. */
export function KnowledgeView() {
  const { data, error, isPending } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => dataOf(api.GET("/knowledge", { signal })),
    refetchInterval: ({ state }) => (state.data?.instances.some((one) => isRefreshing(one.refresh)) ? 700 : 30_000),
  });
  return (
    <div className="stack">
      <h1>{t("Knowledge")}</h1>
      <p className="quiet">
        {t(
          "Flows are built from the node types of the server that runs them. The list is cached and refreshed automatically. Refresh it after installing another version or a custom node.",
        )}
      </p>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">{t("Loading the knowledge…")}</p>}
      {data?.instances.map((known) => (
        <Instance key={known.instance} known={known} snapshot={data.snapshot} />
      ))}
    </div>
  );
}

function Instance({ known, snapshot }: { known: Knowledge; snapshot: KnowledgeList["snapshot"] }) {
  const queries = useQueryClient();
  const refresh = useMutation({
    mutationFn: () =>
      dataOf(api.POST("/knowledge/{instance_id}/refresh", { params: { path: { instance_id: known.instance } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  const { nodes } = known;
  return (
    <section className="card stack tight" aria-label={`Knowledge of ${known.instance}`}>
      <div className="row apart">
        <h2>{known.instance}</h2>
        <button
          type="button"
          className="button"
          onClick={() => refresh.mutate()}
          disabled={refresh.isPending || isRefreshing(known.refresh)}
        >
          {t("Refresh")}
        </button>
      </div>
      <dl className="facts">
        <dt>{t("Node types")}</dt>
        <dd>
          {nodes.source === "live"
            ? `${nodes.node_count} of Flowise ${nodes.flowise_version}, confirmed ${age(nodes.age_secs ?? 0)}${
                nodes.drift ? "; differs from the snapshot" : ""
              }`
            : `not loaded yet; the snapshot has ${snapshot.node_count} of Flowise ${snapshot.flowise_version}`}
          {nodes.repaired > 0 && `; ${plural(nodes.repaired, "type")} looked up individually`}
        </dd>
        <dt>{t("Templates")}</dt>
        <dd>
          {known.templates === null
            ? "not loaded yet"
            : `${known.templates}, read ${age(known.templates_age_secs ?? 0)}`}
        </dd>
      </dl>
      <ErrorNote error={refresh.error} />
      {known.refresh && <Progress refresh={known.refresh} />}
    </section>
  );
}

function Progress({ refresh }: { refresh: RefreshView }) {
  return (
    <div className="stack tight">
      <div role="status">
        {refresh.status === "queued" && <p>{t("Waiting for a worker…")}</p>}
        {refresh.status === "running" && (
          <p>
            {t("Reading")} {STEPS[refresh.step ?? ""] ?? "the server"}… ({refresh.steps_done} {t("of")} {refresh.steps}{" "}
            {t("done)")}
          </p>
        )}
        {refresh.status === "done" && (
          <p className="note ok">
            {t("Refreshed")} {ago(refresh.updated_at)}:{" "}
            {Object.entries(refresh.result)
              .map(([step, found]) => `${found.count} ${STEPS[step] ?? step}`)
              .join(", ")}
            . {refresh.result.nodes?.text}
          </p>
        )}
      </div>
      {isRefreshing(refresh) && (
        <progress max={refresh.steps} value={refresh.steps_done} aria-label={t("Progress of the refresh")} />
      )}
      {refresh.status === "failed" && (
        <ErrorNote
          error={{
            message: `The last refresh failed ${ago(refresh.updated_at)}: ${refresh.error?.detail ?? ""}`,
            hint: refresh.error?.hint,
          }}
        />
      )}
    </div>
  );
}

const isRefreshing = (refresh: RefreshView | null): boolean =>
  refresh?.status === "queued" || refresh?.status === "running";

function age(seconds: number): string {
  if (seconds < 60) return "just now";
  return `${seconds < 3_600 ? duration(seconds * 1_000) : `${Math.round(seconds / 3_600)} h`} ago`;
}
