import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call } from "../api/client";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, duration, plural } from "../ui/format";
import type { KnowledgeView as Known, RefreshView } from "./types";
import "./admin.css";

const KEY = ["knowledge"];
const STEPS: Record<string, string> = { nodes: "node types", templates: "templates", credentials: "credentials" };

interface KnowledgeList {
  snapshot: { flowise_version: string; node_count: number };
  instances: Known[];
}

/** What is known of each server, how old it is, and reading it anew. */
export function KnowledgeView() {
  const { data, error, isPending } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call<KnowledgeList>("/knowledge", { signal }),
    refetchInterval: ({ state }) => (state.data?.instances.some((one) => atWork(one.refresh)) ? 700 : 30_000),
  });
  return (
    <div className="stack">
      <h1>Knowledge</h1>
      <p className="quiet">
        Flows are written from the node types of the very server that runs them. The list is kept and asked for again by
        itself; read it anew after you installed another version or a custom node.
      </p>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">Reading…</p>}
      {data?.instances.map((known) => (
        <Instance key={known.instance} known={known} snapshot={data.snapshot} />
      ))}
    </div>
  );
}

function Instance({ known, snapshot }: { known: Known; snapshot: KnowledgeList["snapshot"] }) {
  const queries = useQueryClient();
  const refresh = useMutation({
    mutationFn: () => call<RefreshView>(`/knowledge/${encodeURIComponent(known.instance)}/refresh`, { method: "POST" }),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  const nodes = known.nodes as Record<string, unknown>;
  const live = nodes.source === "live";
  return (
    <section className="card stack tight" aria-label={`Knowledge of ${known.instance}`}>
      <div className="row apart">
        <h2>{known.instance}</h2>
        <button
          type="button"
          className="button"
          onClick={() => refresh.mutate()}
          disabled={refresh.isPending || atWork(known.refresh)}
        >
          Read anew
        </button>
      </div>
      <dl className="facts">
        <dt>Node types</dt>
        <dd>
          {live
            ? `${nodes.node_count} of Flowise ${nodes.flowise_version}, confirmed ${old(Number(nodes.age_secs))}${
                nodes.drift ? "; other than in the snapshot" : ""
              }`
            : `not read yet; the snapshot has ${snapshot.node_count} of Flowise ${snapshot.flowise_version}`}
          {Number(nodes.repaired) > 0 && `; ${plural(Number(nodes.repaired), "type")} asked for one by one`}
        </dd>
        <dt>Templates</dt>
        <dd>
          {known.templates === null ? "not read yet" : `${known.templates}, read ${old(known.templates_age_secs ?? 0)}`}
        </dd>
      </dl>
      <ErrorNote error={refresh.error} />
      {known.refresh && <Progress refresh={known.refresh} />}
    </section>
  );
}

function Progress({ refresh }: { refresh: RefreshView }) {
  const results = refresh.result as Record<string, { count?: number; text?: string }>;
  return (
    <div className="stack tight">
      <div role="status">
        {refresh.status === "queued" && <p>Waiting for a worker…</p>}
        {refresh.status === "running" && (
          <p>
            Reading {STEPS[refresh.step ?? ""] ?? "the server"}… ({refresh.steps_done} of {refresh.steps} done)
          </p>
        )}
        {refresh.status === "done" && (
          <p className="note ok">
            Read {ago(refresh.updated_at)}:{" "}
            {Object.entries(results)
              .map(([step, found]) => `${found.count ?? 0} ${STEPS[step] ?? step}`)
              .join(", ")}
            . {results.nodes?.text}
          </p>
        )}
      </div>
      {atWork(refresh) && (
        <progress max={refresh.steps} value={refresh.steps_done} aria-label="Progress of reading the server" />
      )}
      {refresh.status === "failed" && (
        <ErrorNote
          error={{
            message: `The last try failed ${ago(refresh.updated_at)}: ${refresh.error?.detail ?? ""}`,
            hint: refresh.error?.hint,
          }}
        />
      )}
    </div>
  );
}

const atWork = (refresh: RefreshView | null): boolean => refresh?.status === "queued" || refresh?.status === "running";

function old(seconds: number): string {
  if (seconds < 60) return "just now";
  return `${seconds < 3_600 ? duration(seconds * 1_000) : `${Math.round(seconds / 3_600)} h`} ago`;
}
