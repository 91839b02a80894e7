import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../api/client";
import { FlowDiff } from "../flow/FlowDiff";
import { comparison } from "../flow/queries";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, moment } from "../ui/format";
import type { VersionView } from "./types";

const LIVE = "live";

/** What a session's flow held before and after each of its writes. */
export function VersionsView({ params }: { params: Record<string, string> }) {
  const id = params.id ?? "";
  return <Versions title="Versions of the session's flow" path={`/sessions/${encodeURIComponent(id)}/versions`} />;
}

/** What a chatflow held, written by whichever session. */
export function HistoryView({ params }: { params: Record<string, string> }) {
  const id = params.id ?? "";
  return <Versions title="History of the flow" path={`/flows/${encodeURIComponent(id)}/history`} newestFirst />;
}

/** Versions to compare with each other and with the flow as it is, and to go back to. */
function Versions({ title, path, newestFirst = false }: { title: string; path: string; newestFirst?: boolean }) {
  const { data, error, isPending } = useQuery({
    queryKey: ["versions", path],
    queryFn: ({ signal }) => call<{ versions: VersionView[] }>(path, { signal }),
  });
  const versions = newestFirst ? (data?.versions ?? []) : [...(data?.versions ?? [])].reverse();
  const newest = versions[0];
  return (
    <div className="stack">
      <h1>{title}</h1>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">Reading the versions…</p>}
      {data && !newest && (
        <p className="quiet">There is no version yet. Versions come with what sessions write to a flow.</p>
      )}
      {newest && (
        <>
          <p>
            <strong>{newest.name}</strong>{" "}
            <small>
              on {newest.instance} · <code>{newest.chatflow_id}</code>
            </small>{" "}
            {!newestFirst && <Link href={`/history/${newest.chatflow_id}`}>All versions of this flow</Link>}
          </p>
          <VersionTable versions={versions} path={path} />
          <Comparison key={versions.map(referenceOf).join()} versions={versions} />
        </>
      )}
    </div>
  );
}

function VersionTable({ versions, path }: { versions: VersionView[]; path: string }) {
  const queries = useQueryClient();
  const rollback = useMutation({
    mutationFn: (version: VersionView) =>
      call<{ label: string; already_there: boolean }>(`/sessions/${version.session_id}/rollback`, {
        method: "POST",
        query: { version: version.label },
      }),
    onSuccess: () => {
      queries.invalidateQueries({ queryKey: ["versions", path] });
      queries.invalidateQueries({ queryKey: ["compare"] });
    },
  });
  return (
    <section className="stack tight" aria-label="Versions">
      <div role="status">
        {rollback.isPending && <p className="note">Writing {rollback.variables.label} back…</p>}
        {rollback.data && (
          <p className="note ok">
            {rollback.data.already_there
              ? `The flow holds ${rollback.data.label} already; nothing was written.`
              : `The flow holds ${rollback.data.label} again, as read back from Flowise.`}
          </p>
        )}
      </div>
      <ErrorNote error={rollback.error} />
      <div className="scroll-x">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">What it is</th>
              <th scope="col">When</th>
              <th scope="col">Session</th>
              <th scope="col">
                <span className="visually-hidden">Roll back</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {versions.map((version) => (
              <tr key={referenceOf(version)}>
                <td>
                  <strong>{version.label}</strong> {version.current && <span className="badge ok">last written</span>}
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
                    label="Roll back…"
                    name={`Roll back to ${version.label} of session ${version.session_id.slice(0, 8)}`}
                    question={`Roll back to ${version.label}?`}
                    yes={`Write ${version.label} to Flowise`}
                    busy={rollback.isPending}
                    onYes={() => rollback.mutate(version)}
                  >
                    <p>
                      “{version.name}” gets the text that it had {ago(version.created_at)}. What it holds now is kept as
                      a version first, so this can be undone.
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
    { value: LIVE, name: "Now in Flowise" },
  ];
  return (
    <section className="stack" aria-label="Compare">
      <h2>Compare</h2>
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
          Swap
        </button>
      </div>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">Comparing…</p>}
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
  promote: "the draft, put into use",
  before_promote: "before the draft was put into use",
  rollback: "rolled back",
  before_rollback: "before the roll-back",
};

const reason = (code: string): string => REASONS[code] ?? code;
