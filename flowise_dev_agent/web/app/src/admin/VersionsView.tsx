import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, dataOf } from "../api/client";
import { comparison } from "../api/queries";
import type { VersionList, VersionView } from "../api/types";
import { FlowDiff } from "../flow/FlowDiff";
import { t } from "../i18n";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, moment } from "../ui/format";

const LIVE = "live";

/** Versions of a session's flow, before and after each of its writes. */
export function VersionsView({ params }: { params: Record<string, string> }) {
  const id = params.id ?? "";
  const read = (signal: AbortSignal) =>
    dataOf(api.GET("/sessions/{session_id}/versions", { params: { path: { session_id: id } }, signal }));
  return <Versions key={id} title={t("Versions of the session's flow")} of={["session", id]} read={read} />;
}

/** Versions of a chatflow, written by any session. */
export function HistoryView({ params }: { params: Record<string, string> }) {
  const id = params.id ?? "";
  const read = (signal: AbortSignal) =>
    dataOf(api.GET("/flows/{chatflow_id}/history", { params: { path: { chatflow_id: id } }, signal }));
  return <Versions key={id} title={t("History of the flow")} of={["flow", id]} read={read} newestFirst />;
}

interface VersionsProps {
  title: string;
  /** Identifies the list in the cache. */
  of: ["session" | "flow", string];
  read: (signal: AbortSignal) => Promise<VersionList>;
  newestFirst?: boolean;
}

/** Versions to compare with each other or with the current flow, and to roll back to. */
function Versions({ title, of, read, newestFirst = false }: VersionsProps) {
  const { data, error, isPending } = useQuery({
    queryKey: ["versions", ...of],
    queryFn: ({ signal }) => read(signal),
  });
  const versions = newestFirst ? (data?.versions ?? []) : [...(data?.versions ?? [])].reverse();
  const newest = versions[0];
  return (
    <div className="stack">
      <h1>{title}</h1>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">{t("Loading the versions…")}</p>}
      {data && !newest && <p className="quiet">{t("No versions yet. Each write of a session creates one.")}</p>}
      {newest && (
        <>
          <p>
            <strong>{newest.name}</strong>{" "}
            <small>
              {t("on")} {newest.instance} · <code>{newest.chatflow_id}</code>
            </small>{" "}
            {!newestFirst && <Link href={`/history/${newest.chatflow_id}`}>{t("All versions of this flow")}</Link>}
          </p>
          <VersionTable versions={versions} />
          <Comparison key={versions.map(referenceOf).join()} versions={versions} />
        </>
      )}
    </div>
  );
}

function VersionTable({ versions }: { versions: VersionView[] }) {
  const queries = useQueryClient();
  const rollback = useMutation({
    mutationFn: (version: VersionView) =>
      dataOf(
        api.POST("/sessions/{session_id}/rollback", {
          params: { path: { session_id: version.session_id }, query: { version: version.label } },
        }),
      ),
    onSuccess: () => {
      queries.invalidateQueries({ queryKey: ["versions"] });
      queries.invalidateQueries({ queryKey: ["compare"] });
    },
  });
  return (
    <section className="stack tight" aria-label={t("Versions")}>
      <div role="status">
        {rollback.isPending && (
          <p className="note">
            {t("Rolling back to")} {rollback.variables.label}…
          </p>
        )}
        {rollback.data && (
          <p className="note ok">
            {rollback.data.already_there
              ? `The flow already matches ${rollback.data.label}; nothing was written.`
              : `Rolled back to ${rollback.data.label}, and verified in Flowise.`}
          </p>
        )}
      </div>
      <ErrorNote error={rollback.error} />
      <div className="scroll-x">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{t("Version")}</th>
              <th scope="col">{t("Reason")}</th>
              <th scope="col">{t("When")}</th>
              <th scope="col">{t("Session")}</th>
              <th scope="col">
                <span className="visually-hidden">{t("Roll back")}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {versions.map((version) => (
              <tr key={referenceOf(version)}>
                <td>
                  <strong>{version.label}</strong> {version.current && <span className="badge ok">{t("current")}</span>}
                </td>
                <td>{reason(version.reason)}</td>
                <td>
                  <time dateTime={version.created_at} title={moment(version.created_at)}>
                    {ago(version.created_at)}
                  </time>
                </td>
                <td>
                  <Link href={`/s/${version.session_id}`}>
                    <code>{version.session_id.slice(0, 8)}</code>
                  </Link>
                </td>
                <td>
                  <ConfirmButton
                    label={t("Roll back…")}
                    name={`Roll back to ${version.label} of session ${version.session_id.slice(0, 8)}`}
                    question={`Roll back to ${version.label}?`}
                    yes={`Write ${version.label} to Flowise`}
                    busy={rollback.isPending}
                    onYes={() => rollback.mutate(version)}
                  >
                    <p>
                      “{version.name}
                      {t("” is restored to its state from")} {ago(version.created_at)}
                      {t(". Its current state is saved as a version first, so you can undo this.")}
                    </p>
                  </ConfirmButton>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Comparison({ versions }: { versions: VersionView[] }) {
  const oldest = versions.at(-1);
  const [before, setBefore] = useState(oldest ? referenceOf(oldest) : LIVE);
  const [after, setAfter] = useState(LIVE);
  const { data, error, isPending } = useQuery(comparison(versions[0]?.chatflow_id ?? "", before, after));
  const choices = [
    ...versions.map((version) => ({
      value: referenceOf(version),
      name: `${version.label} · ${reason(version.reason)} · ${moment(version.created_at)}`,
    })),
    { value: LIVE, name: "Current flow in Flowise" },
  ];
  return (
    <section className="stack" aria-label={t("Compare")}>
      <h2>{t("Compare")}</h2>
      <div className="row">
        <Choice name="From" value={before} choices={choices} onChange={setBefore} />
        <Choice name="To" value={after} choices={choices} onChange={setAfter} />
        <button
          type="button"
          className="button"
          onClick={() => {
            setBefore(after);
            setAfter(before);
          }}
        >
          {t("Swap")}
        </button>
      </div>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">{t("Comparing…")}</p>}
      {data && <FlowDiff key={`${before} ${after}`} change={data} />}
    </section>
  );
}

function Choice({
  name,
  value,
  choices,
  onChange,
}: {
  name: string;
  value: string;
  choices: { value: string; name: string }[];
  onChange: (value: string) => void;
}) {
  return (
    <label className="field">
      {name}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.name}
          </option>
        ))}
      </select>
    </label>
  );
}

const referenceOf = (version: VersionView): string => `${version.session_id}:${version.label}`;

const REASONS: Record<string, string> = {
  create: "created",
  update: "changed",
  before_update: "before the change",
  after_update: "saved by someone else during the change",
  promote: "draft promoted",
  before_promote: "before the promotion",
  after_promote: "saved by someone else during the promotion",
  before_delete: "before the flow was deleted",
  rollback: "rolled back",
  before_rollback: "before the rollback",
  apply: "changed by ops or a file",
  before_apply: "before the change by ops or a file",
  promotion: "copied from another instance",
  before_promotion: "before the copy from another instance",
};

const reason = (code: string): string => REASONS[code] ?? code;
