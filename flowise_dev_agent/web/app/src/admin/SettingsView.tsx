import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "../api/client";
import { forgetKey, keptKey } from "../api/early";
import type { PublicSettings } from "../api/types";
import { language, t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { ExpertSwitch } from "../ui/ExpertSwitch";
import { plural } from "../ui/format";
import "./admin.css";

const LIMITS: Record<string, string> = {
  max_iterations: "Iterations",
  max_patch_ops_per_iter: "Ops per iteration",
  max_schema_repairs_per_iter: "Node types looked up per iteration",
  max_total_retries_per_iter: "Retries per iteration",
  max_workflow_nodes: "Added nodes per session",
  session_tokens: "Tokens per session",
  session_usd: "USD per session",
  run_attempts: "Attempts after an outage",
};

/** What a model, or code, does in a session. */
const STEPS: Record<string, string> = {
  classify: "Understand the request",
  plan: "Plan",
  patch: "Write the change",
  judge: "Judge the answers",
};

/** What happens when the node types of a server change. */
const DRIFT: Record<string, string> = { warn: "said in the session", fail: "stop the session", refresh: "read again" };

const RETENTION: Record<string, string> = {
  sessions: "Ended sessions",
  threads: "Checkpoints",
  events: "Events",
  artifacts: "Test answers and drafts",
};

/** The settings of the service, read-only. */
export function SettingsView() {
  const { data, error, isPending } = useQuery({
    queryKey: ["settings"],
    queryFn: ({ signal }) => dataOf(api.GET("/settings", { signal })),
  });
  return (
    <div className="stack">
      <h1>{t("Settings")}</h1>
      <p className="quiet">{t("Set by environment variables of the service. Keys and secrets are not shown.")}</p>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">{t("Loading the settings…")}</p>}
      {data && (
        <div className="columns">
          <Shown settings={data} />
        </div>
      )}
      {!isPending && <ExpertSwitch />}
      {!isPending && <StoredKey />}
    </div>
  );
}

function Shown({ settings }: { settings: PublicSettings }) {
  const yes = (value: boolean) => (value ? t("yes") : t("no"));
  const days = (value: number) => (value > 0 ? plural(value, "day") : t("unlimited"));
  return (
    <>
      <Group
        title={t("Reasoning")}
        facts={[
          ["Engine", settings.engine === "deterministic" ? t("without a model") : settings.engine],
          ...Object.entries(settings.phases).map(([phase, { mode, model }]): [string, string] => [
            STEPS[phase] ?? phase,
            mode === "deterministic" ? t("without a model") : model,
          ]),
          ["Retries per phase", String(settings.retry_count)],
          ["Fallback to the other mode", yes(settings.fallback_enabled)],
        ]}
      />
      <Group
        title={t("Limits")}
        facts={Object.entries(settings.limits)
          .filter(([name]) => name in LIMITS)
          .map(([name, value]) => [LIMITS[name] ?? name, Number(value).toLocaleString(language())])}
      />
      <Group
        title={t("Retention")}
        facts={Object.entries(settings.retention_days).map(([name, value]) => [RETENTION[name] ?? name, days(value)])}
      />
      <Group
        title={t("Service")}
        facts={[
          ["Version", settings.version],
          ["API key required", yes(settings.auth)],
          ["Instances", settings.instances.map((one) => one.id + (one.default ? ` (${t("default")})` : "")).join(", ")],
          ["Node type changes", t(DRIFT[settings.schema_drift_policy] ?? settings.schema_drift_policy)],
          [
            "Session starts per minute",
            settings.rate_limit_sessions_per_min ? String(settings.rate_limit_sessions_per_min) : t("no limit"),
          ],
          ["Concurrent runs per worker", String(settings.worker_concurrency)],
          ["Signed webhooks", yes(settings.webhooks_signed)],
          ["Public address", settings.public_base_url ?? t("not set")],
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
            <dt>{t(name)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function StoredKey() {
  const [kept, setKept] = useState(() => keptKey() !== null);
  if (!kept) return null;
  return (
    <section className="card row apart" aria-label={t("Key")}>
      <p>{t("This tab stores the API key until it is closed.")}</p>
      <button
        type="button"
        className="button"
        onClick={() => {
          forgetKey();
          setKept(false);
        }}
      >
        {t("Forget the key")}
      </button>
    </section>
  );
}
