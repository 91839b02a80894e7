import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, dataOf } from "../api/client";
import { health } from "../api/queries";
import type { InstanceView } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { AddCredential } from "../ui/AddCredential";
import { Connection } from "../ui/Connect";
import { ErrorNote } from "../ui/ErrorNote";
import { plural } from "../ui/format";

/** The Flowise servers, and the parts of this service. */
export function InstancesView() {
  const { data, error, isPending, isFetching, refetch } = useQuery({
    queryKey: ["instances"],
    queryFn: ({ signal }) => dataOf(api.GET("/instances", { signal })),
  });
  return (
    <div className="stack">
      <div className="row apart">
        <h1>{t("Instances")}</h1>
        <button type="button" className="button" onClick={() => refetch()} disabled={isFetching}>
          {isFetching ? t("Checking the servers…") : t("Check again")}
        </button>
      </div>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">{t("Checking the servers; this may take 10 seconds…")}</p>}
      {data?.instances.map((instance) => (
        <Instance key={instance.id} instance={instance} />
      ))}
      {!isPending && (
        <>
          <section className="card stack tight" aria-label={t("Model")}>
            <h2>{t("Model")}</h2>
            <Connection kind="model" />
          </section>
          <Service />
        </>
      )}
    </div>
  );
}

function Instance({ instance }: { instance: InstanceView }) {
  const { drift } = instance;
  return (
    <section className="card stack tight" aria-label={t("Instance {{name}}", { name: instance.id })}>
      <h2 className="row">
        {instance.id}
        <State ok={instance.state === "ok"} word={instance.state === "ok" ? t("reachable") : t("not reachable")} />
        {instance.default && <span className="badge">{t("default")}</span>}
      </h2>
      {instance.default && <Connection kind="flowise" />}
      <dl className="facts">
        {!instance.default && (
          <>
            <dt>{t("Address")}</dt>
            <dd>{instance.endpoint}</dd>
          </>
        )}
        {instance.version && (
          <>
            <dt>{t("Flowise")}</dt>
            <dd>
              {instance.version}, {plural(instance.nodes ?? 0, "node type")}
            </dd>
          </>
        )}
        {drift && (
          <>
            <dt>{t("Node types")}</dt>
            <dd>
              {drift.differs
                ? t("Different from the snapshot of Flowise {{version}}; the server's own are used.", {
                    version: drift.snapshot_version,
                  })
                : t("The same as in the snapshot of Flowise {{version}}.", { version: drift.snapshot_version })}
              {(["added", "removed", "changed"] as const).map(
                (kind) =>
                  drift[kind].length > 0 && (
                    <div key={kind}>
                      <small>
                        {t(kind)}: {drift[kind].join(", ")}
                        {drift[kind].length === 20 && ", …"}
                      </small>
                    </div>
                  ),
              )}
            </dd>
          </>
        )}
      </dl>
      {instance.error && <p className="note bad">{worded(instance, "error")}</p>}
      <p>
        <Link href="/knowledge">{t("Knowledge")}</Link>
      </p>
      {instance.state === "ok" && <AddCredential instance={instance.id} />}
    </section>
  );
}

function Service() {
  const { data, error } = useQuery({ ...health(), refetchInterval: 10_000 });
  return (
    <section className="card stack tight" aria-label={t("This service")}>
      <h2 className="row">
        {t("This service")} {data && <State ok={data.status === "ok"} word={t(data.status)} />}
      </h2>
      <ErrorNote error={error} />
      {data && (
        <dl className="facts">
          <dt>{t("Version")}</dt>
          <dd>{data.version}</dd>
          <dt>{t("Database")}</dt>
          <dd>
            {t(data.database?.state ?? "unknown")}
            {data.database?.latency_ms !== undefined && `, ${data.database.latency_ms} ms`}
          </dd>
          <dt>{t("Queue")}</dt>
          <dd>
            {data.queue
              ? t("{{runs}} waiting, {{workers}}", {
                  runs: plural(data.queue.queued, "run"),
                  workers: plural(data.queue.workers, "worker"),
                })
              : t("unknown")}
          </dd>
          <dt>{t("Worker in this process")}</dt>
          <dd>
            {data.worker
              ? t("{{state}}, {{runs}} active", { state: t(data.worker.state), runs: plural(data.worker.runs, "run") })
              : t("none")}
          </dd>
          <dt>{t("Event feed")}</dt>
          <dd>{t(data.feed)}</dd>
        </dl>
      )}
    </section>
  );
}

function State({ ok, word }: { ok: boolean; word: string }) {
  return (
    <span className={ok ? "badge ok" : "badge bad"}>
      <span aria-hidden="true">{ok ? "✓" : "✕"}</span> {word}
    </span>
  );
}
