/** Flows from files of Flowise: dropped or chosen, checked on the server, and written when the person says so. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useRef, useState } from "react";
import { Link } from "wouter";
import { api, dataOf } from "../api/client";
import { caller } from "../api/queries";
import type { FlowWriteResult, ReadFlow } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { useFileDrop } from "../ui/files";
import { plural } from "../ui/format";
import { newKey } from "./start";

const Findings = lazy(() => import("../session/questions/controls").then((module) => ({ default: module.Findings })));

/** As the service has it. */
const MOST_CHARS = 8_000_000;

interface Row {
  key: string;
  flow: ReadFlow;
  chosen: boolean;
  result: FlowWriteResult | null;
  error: unknown;
}

interface Read {
  rows: Row[];
  others: string[];
}

/** A place for files, for those who may write. */
export function ImportFlows({ instance }: { instance: string }) {
  const { data: person } = useQuery(caller());
  const queries = useQueryClient();
  const picker = useRef<HTMLInputElement>(null);
  const [{ rows, others }, setRead] = useState<Read>({ rows: [], others: [] });
  const keep = (done: Row) =>
    setRead((read) => ({ ...read, rows: read.rows.map((row) => (row.key === done.key ? done : row)) }));
  /** Check a flow, or write it. */
  async function sent(row: Row, dry_run: boolean): Promise<Row> {
    const header = dry_run ? {} : { header: { "idempotency-key": row.key } };
    const params = { ...header, query: { ...(instance && { instance }), ...(!dry_run && { wait_secs: 60 }) } };
    try {
      const body = { ...row.flow.request, dry_run } as never;
      return { ...row, result: await dataOf(api.POST("/flows/import", { params, body })), error: null };
    } catch (error) {
      return { ...row, error };
    }
  }
  const read = useMutation({
    mutationFn: async (files: File[]) => {
      const found: Read = { rows: [], others: [] };
      for (const file of files) {
        if (file.size > MOST_CHARS)
          throw new Error(t("{{name}} is larger than {{most}} MB.", { name: file.name, most: 8 }));
        const body = { text: await file.text(), name: file.name.slice(0, 200) };
        const { flows, others } = await dataOf(api.POST("/flows/import/read", { body }));
        for (const flow of flows as ReadFlow[])
          found.rows.push({ key: newKey(), flow, chosen: true, result: null, error: null });
        for (const [kind, count] of Object.entries(others)) found.others.push(`${count} ${kind}`);
      }
      setRead(found);
      for (const row of found.rows) {
        const checked = await sent(row, true);
        keep({ ...checked, chosen: !checked.error && checked.result?.valid === true });
      }
    },
  });
  const write = useMutation({
    // One after the other: a flow that another one calls comes before it.
    mutationFn: async () => {
      for (const row of rows.filter((one) => one.chosen && !written(one))) keep(await sent(row, false));
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["flows"] }),
  });
  const { over, handlers } = useFileDrop(read.mutate);
  if (!person?.scopes.includes("approve")) return null;
  const busy = read.isPending || write.isPending;
  const chosen = rows.filter((row) => row.chosen && !written(row)).length;
  return (
    <section className={over ? "file-drop over" : "file-drop"} aria-labelledby="import-title" {...handlers}>
      <div className="row apart">
        <h2 id="import-title">{t("Import flows")}</h2>
        <button type="button" className="button small" disabled={busy} onClick={() => picker.current?.click()}>
          {read.isPending ? t("Reading the file…") : t("Choose files")}
        </button>
        <input
          ref={picker}
          type="file"
          hidden
          multiple
          accept=".json"
          aria-label={t("Files with flows")}
          onChange={(event) => {
            read.mutate([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
      </div>
      {rows.length === 0 && <p className="quiet">{t("Drop files here as Flowise exports them.")}</p>}
      {rows.length > 0 && (
        <table className="table">
          <thead>
            <tr>
              <th>{t("Flow")}</th>
              <th>{t("Type")}</th>
              <th>{t("Result")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.key}>
                <td>
                  <label className="check words">
                    <input
                      type="checkbox"
                      checked={row.chosen}
                      disabled={busy || written(row) || !row.result?.valid}
                      onChange={(event) => keep({ ...row, chosen: event.target.checked })}
                    />
                    {row.flow.request.name}
                  </label>
                </td>
                <td>{row.flow.request.type}</td>
                <td>
                  <Result row={row} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {others.length > 0 && <p className="quiet">{t("Not imported: {{names}}", { names: others.join(", ") })}</p>}
      <ErrorNote error={read.error} />
      {chosen > 0 && (
        <div>
          <button type="button" className="button primary" disabled={busy} onClick={() => write.mutate()}>
            {write.isPending ? t("Writing to Flowise…") : plural(chosen, "flow to import")}
          </button>
        </div>
      )}
    </section>
  );
}

const written = ({ result }: Row): boolean => result !== null && result.status !== "checked";

/** What was found of a flow, or what became of it. */
function Result({ row: { flow, result, error } }: { row: Row }) {
  if (error) return <ErrorNote error={error} />;
  if (!result) return <span className="quiet">{t("Checking what would be written…")}</span>;
  const left = flow.left_out.length > 0 && t("Not imported: {{names}}", { names: flow.left_out.join(", ") });
  return (
    <div className="stack tight">
      {result.status === "completed" && (
        <p role="status">
          <Link href={`/f/${result.chatflow_id}/${result.instance}`}>{t("Show the flow")}</Link>
        </p>
      )}
      {result.status === "in_progress" && <Link href={`/s/${result.session_id}`}>{t("Writing to Flowise…")}</Link>}
      {result.credentials.map((one) => (
        <small key={one.target_id} className="words">
          {t("{{nodes}}: credential “{{name}}”", { nodes: (one.nodes ?? []).join(", "), name: one.target_name })}
        </small>
      ))}
      {(result.references ?? []).map((one) => (
        <small key={`${one.kind} ${one.name}`} className="words">
          {one.created ? t("“{{name}}” is made", { name: one.name }) : t("“{{name}}” is there", { name: one.name })}
        </small>
      ))}
      {left && <small>{left}</small>}
      {result.status === "checked" && (
        <Suspense>
          <Findings findings={result.findings} />
        </Suspense>
      )}
    </div>
  );
}
