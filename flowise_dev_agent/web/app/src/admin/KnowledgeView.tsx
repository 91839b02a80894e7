import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import type { KnowledgeView as Knowledge, KnowledgeList, RefreshView } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, plural } from "../ui/format";
import { Notes } from "./Notes";
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
      {data && <Notes instances={data.instances.map((one) => one.instance)} />}
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
    <section className="card stack tight" aria-label={t("Knowledge of {{name}}", { name: known.instance })}>
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
            ? t("{{number}} of Flowise {{version}}, confirmed {{when}}", {
                number: nodes.node_count ?? 0,
                version: nodes.flowise_version ?? "",
                when: age(nodes.age_secs ?? 0),
              })
            : t("not loaded yet; the snapshot has {{number}} of Flowise {{version}}", {
                number: snapshot.node_count,
                version: snapshot.flowise_version,
              })}
          {nodes.source === "live" && nodes.drift && `; ${t("differs from the snapshot")}`}
          {nodes.repaired > 0 &&
            `; ${t("{{types}} looked up individually", { types: plural(nodes.repaired, "type") })}`}
        </dd>
        <dt>{t("Templates")}</dt>
        <dd>
          {known.templates === null
            ? t("not loaded yet")
            : t("{{number}}, read {{when}}", { number: known.templates, when: age(known.templates_age_secs ?? 0) })}
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
        {refresh.status === "queued" && <p>{t("Waiting for its turn…")}</p>}
        {refresh.status === "running" && (
          <p>
            {t("Reading {{what}}… ({{done}} of {{all}} done)", {
              what: t(STEPS[refresh.step ?? ""] ?? "the server"),
              done: refresh.steps_done,
              all: refresh.steps,
            })}
          </p>
        )}
        {refresh.status === "done" && (
          <p className="note ok">
            {t("Refreshed {{when}}: {{what}}.", {
              when: ago(refresh.updated_at),
              what: Object.entries(refresh.result)
                .map(([step, found]) => `${found.count} ${t(STEPS[step] ?? step)}`)
                .join(", "),
            })}{" "}
            {refresh.result.nodes && worded(refresh.result.nodes, "text")}
          </p>
        )}
      </div>
      {isRefreshing(refresh) && (
        <progress max={refresh.steps} value={refresh.steps_done} aria-label={t("Progress of the refresh")} />
      )}
      {refresh.status === "failed" && (
        <ErrorNote
          error={{
            message: t("The last refresh failed {{when}}: {{why}}", {
              when: ago(refresh.updated_at),
              why: refresh.error ? worded(refresh.error, "detail") : "",
            }),
            hint: refresh.error && worded(refresh.error, "hint"),
          }}
        />
      )}
    </div>
  );
}

const isRefreshing = (refresh: RefreshView | null): boolean =>
  refresh?.status === "queued" || refresh?.status === "running";

const age = (seconds: number): string => ago(new Date(Date.now() - seconds * 1_000).toISOString());
