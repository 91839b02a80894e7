import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, forgetKey, hasKey } from "../api/client";
import { ErrorNote } from "../ui/ErrorNote";
import type { PublicSettings } from "./types";
import "./admin.css";

const LIMITS: Record<string, string> = {
  max_iterations: "Iterations",
  max_patch_ops_per_iter: "Ops in one iteration",
  max_schema_repairs_per_iter: "Node types asked for in one iteration",
  max_total_retries_per_iter: "Tries to write valid ops",
  max_workflow_nodes: "Nodes that a session may add",
  session_tokens: "Tokens of a session",
  session_usd: "USD of a session",
  run_attempts: "Tries after an outage",
};

const KEPT: Record<string, string> = {
  sessions: "Sessions that have ended",
  threads: "Their checkpoints",
  events: "Their events",
  artifacts: "Their test answers and drafts",
};

/** How the service is set up, as far as it shapes what people see. Settings are environment variables; none is changed here. */
export function SettingsView() {
  const { data, error, isPending } = useQuery({
    queryKey: ["settings"],
    queryFn: ({ signal }) => call<PublicSettings>("/settings", { signal }),
  });
  return (
    <div className="stack">
      <h1>Settings</h1>
      <p className="quiet">
        They are set by environment variables where the service is started, and shown here without keys and secrets.
      </p>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">Reading…</p>}
      {data && (
        <div className="columns">
          <Shown settings={data} />
        </div>
      )}
      <KeyOfThisTab />
    </div>
  );
}

function Shown({ settings }: { settings: PublicSettings }) {
  const yes = (value: boolean) => (value ? "yes" : "no");
  const days = (value: number) => (value > 0 ? `${value} days` : "for ever");
  return (
    <>
      <Group
        title="Reasoning"
        facts={[
          ["Engine", settings.engine === "deterministic" ? "rules, without a model" : settings.engine],
          ...Object.entries(settings.phases).map(([phase, { mode, model }]): [string, string] => [
            phase,
            mode === "deterministic" ? "rules" : model,
          ]),
          ["Further tries of a phase", String(settings.retry_count)],
          ["Fall back to the other mode", yes(settings.fallback_enabled)],
        ]}
      />
      <Group
        title="Limits of a session"
        facts={Object.entries(settings.limits)
          .filter(([name]) => name in LIMITS)
          .map(([name, value]) => [LIMITS[name] ?? name, Number(value).toLocaleString()])}
      />
      <Group
        title="Kept for"
        facts={Object.entries(settings.retention_days).map(([name, value]) => [KEPT[name] ?? name, days(value)])}
      />
      <Group
        title="Service"
        facts={[
          ["Version", settings.version],
          ["Asks for a key", yes(settings.auth)],
          ["Instances", settings.instances.map((one) => one.id + (one.default ? " (default)" : "")).join(", ")],
          ["When node types change", settings.schema_drift_policy],
          [
            "Starts per minute",
            settings.rate_limit_sessions_per_min ? String(settings.rate_limit_sessions_per_min) : "no limit",
          ],
          ["Steps at a time in a worker", String(settings.worker_concurrency)],
          ["Webhooks signed by the service", yes(settings.webhooks_signed)],
          ["Public address", settings.public_base_url ?? "not set"],
          ["Tracing", yes(settings.tracing)],
        ]}
      />
    </>
  );
}

function Group({ title, facts }: { title: string; facts: [string, string][] }) {
  return (
    <section className="card stack tight" aria-label={title}>
      <h2 className="small-title">{title}</h2>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name} className="fact">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function KeyOfThisTab() {
  const [kept, setKept] = useState(hasKey);
  if (!kept) return null;
  return (
    <section className="card row apart" aria-label="Key">
      <p>This tab keeps the service's key until it is closed.</p>
      <button
        type="button"
        className="button"
        onClick={() => {
          forgetKey();
          setKept(false);
        }}
      >
        Forget the key
      </button>
    </section>
  );
}
