/** The versions of a flow as people count them: what each brought, any two compared, one press back. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { api, dataOf } from "../api/client";
import { caller, comparison, flowVersions } from "../api/queries";
import type { NumberedVersion } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { ShareButton } from "../share/ShareButton";
import { ConfirmButton } from "../ui/ConfirmButton";
import { CopyButton } from "../ui/CopyButton";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, moment } from "../ui/format";
import { MoreButton } from "../ui/MoreButton";
import "./history.css";

const FlowDiff = lazy(() => import("./FlowDiff").then((module) => ({ default: module.FlowDiff })));

/** The flow as Flowise has it now, in a comparison. */
const LIVE = "live";

export function HistoryPage({ params }: { params: Record<string, string> }) {
  const id = params.id ?? "";
  const pages = useInfiniteQuery(flowVersions(id));
  const versions = pages.data?.pages.flatMap((page) => page.versions) ?? [];
  const [, go] = useLocation();
  const asked = new URLSearchParams(useSearch());
  const [newest, older] = versions;
  const after = asked.get("after") ?? newest?.name ?? LIVE;
  const before = asked.get("before") ?? older?.name ?? newest?.name ?? LIVE;
  // The two are in the address, so that a link shows a colleague the same.
  const compare = (from: string, to: string) => go(`/history/${id}?before=${from}&after=${to}`, { replace: true });
  const undo = useRestore(id);
  const moves = versions.filter((version) => version.moved);
  const [unfolded, setUnfolded] = useState(false);
  const earlierThan = (name: string) => versions[versions.findIndex((one) => one.name === name) + 1]?.name ?? name;
  return (
    <div className="stack">
      <div className="row apart">
        <div className="row">
          <Link href={`/f/${id}`} className="back" aria-label={t("Back to the flow")}>
            ←
          </Link>
          <div>
            <h1>{t("History of the flow")}</h1>
            {/* Its line is there from the start, so that nothing moves when the name comes. */}
            <p className="quiet words">{newest?.flow_name ?? "\u00a0"}</p>
          </div>
        </div>
        <div className="row">
          {newest?.current && older && (
            <ConfirmButton
              label={t("Undo {{name}}", { name: newest.name })}
              question={t("Undo {{name}}?", { name: newest.name })}
              yes={t("Write {{name}} to Flowise", { name: older.name })}
              busy={undo.isPending}
              onYes={() => undo.mutate(older)}
            >
              <p>{t("It changes the flow that people use now. You can take it back in the same way.")}</p>
            </ConfirmButton>
          )}
          <CopyButton text={() => location.href} label={t("Copy the link")} />
          <ShareButton subject="flow" id={id} />
        </div>
      </div>
      <Restored name={undo.variables?.name ?? ""} done={undo.data} />
      <ErrorNote error={pages.error ?? undo.error} />
      {pages.isPending && <p className="quiet">{t("Loading the versions…")}</p>}
      {pages.data && versions.length === 0 && (
        <p className="quiet">{t("No versions yet. Each write of a session creates one.")}</p>
      )}
      {versions.length > 0 && (
        <div className="history">
          <section className="stack tight" aria-label={t("Versions")}>
            <ol className="plain version-list">
              {(unfolded ? versions : versions.filter((version) => !version.moved)).map((version) => (
                <Version
                  key={version.name}
                  flow={id}
                  version={version}
                  called={newest?.flow_name ?? ""}
                  shown={version.name === after}
                  onShow={() => compare(earlierThan(version.name), version.name)}
                />
              ))}
            </ol>
            {moves.length > 0 && (
              <button
                type="button"
                className="button plain"
                aria-pressed={unfolded}
                onClick={() => setUnfolded(!unfolded)}
              >
                {t("Also where nodes were only moved ({{count}})", { count: moves.length })}
              </button>
            )}
            <MoreButton list={pages}>{t("Earlier versions")}</MoreButton>
          </section>
          <Comparison flow={id} versions={versions} before={before} after={after} onCompare={compare} />
        </div>
      )}
    </div>
  );
}

/** The request that led to it, in the person's words; what happened otherwise in those of the page. */
const titleOf = (version: NumberedVersion): string =>
  version.origin === "session" ? version.title : worded(version, "title");

/** Writes a version to Flowise; what the flow holds then is a version too. */
function useRestore(flow: string) {
  const refresh = useRefresh();
  return useMutation({
    mutationFn: async ({ session_id, label, name }: NumberedVersion) => {
      if (session_id)
        return dataOf(
          api.POST("/sessions/{session_id}/rollback", { params: { path: { session_id }, query: { version: label } } }),
        );
      const path = { chatflow_id: flow, version: name };
      const { left_out } = await dataOf(
        api.POST("/flows/{chatflow_id}/versions/{version}/restore", {
          params: { path, query: { wait: 20 } },
          body: { dry_run: false },
        }),
      );
      return { already_there: false, left_out };
    },
    onSuccess: refresh,
  });
}

function useRefresh() {
  const queries = useQueryClient();
  return () => {
    for (const key of ["versions", "compare", "flow"]) void queries.invalidateQueries({ queryKey: [key] });
  };
}

function Restored({ name, done }: { name: string; done: { already_there: boolean; left_out?: string[] } | undefined }) {
  return (
    <div role="status">
      {done && (
        <p className="note ok">
          {done.already_there
            ? t("The flow already is as {{name}}; nothing was written.", { name })
            : t("The flow is as {{name}} again, and verified in Flowise.", { name })}
          {done.left_out?.[0] &&
            ` ${t("Not written: {{names}}. The flow keeps its own.", { names: done.left_out.join(", ") })}`}
        </p>
      )}
    </div>
  );
}

interface VersionProps {
  flow: string;
  version: NumberedVersion;
  /** The name of the newest version. */
  called: string;
  shown: boolean;
  onShow: () => void;
}

function Version({ flow, version, called, shown, onShow }: VersionProps) {
  const { data: person } = useQuery(caller());
  const mine = version.by === person?.name;
  const refresh = useRefresh();
  const restore = useRestore(flow);
  const mark = useMutation({
    mutationFn: async (marked: boolean) => {
      const path = { chatflow_id: flow, version: version.name };
      if (marked)
        await api.PUT("/flows/{chatflow_id}/versions/{version}/bookmark", { params: { path }, body: { note: "" } });
      else await api.DELETE("/flows/{chatflow_id}/versions/{version}/bookmark", { params: { path } });
    },
    onSuccess: refresh,
  });
  const marked = version.bookmark !== null;
  const { name } = version;
  return (
    <li className={shown ? "version shown" : "version"}>
      <button type="button" className="version-title" aria-pressed={shown} onClick={onShow}>
        <strong>{name}</strong> <span className="words">{titleOf(version)}</span>
      </button>
      <Renamed from={version.renamed_from} to={version.flow_name} />
      <p className="row">
        {version.current && <span className="badge ok">{t("current")}</span>}
        {version.origin === "elsewhere" && <span className="badge">{t("edited in Flowise")}</span>}
        {version.restores && <span className="badge">{t("as {{name}}", { name: version.restores })}</span>}
        <small>
          <time dateTime={version.created_at} title={moment(version.created_at)}>
            {ago(version.created_at)}
          </time>
          {version.by && (!mine || person?.signed_in) && ` · ${mine ? t("You") : version.by}`}
        </small>
        <button
          type="button"
          className="star"
          aria-pressed={marked}
          aria-label={t("Bookmark {{name}}", { name })}
          disabled={mark.isPending}
          onClick={() => mark.mutate(!marked)}
        >
          {marked ? "★" : "☆"}
        </button>
      </p>
      <div className="row">
        {version.session_id && <Link href={`/s/${version.session_id}`}>{t("Conversation")}</Link>}
        {version.current && version.name === "v1" && version.origin === "session" && <TakeBack version={version} />}
        {!version.current && (
          <ConfirmButton
            label={t("Go back")}
            name={t("Go back to {{name}}", { name })}
            look="plain"
            question={t("Go back to {{name}}?", { name })}
            yes={t("Write {{name}} to Flowise", { name })}
            busy={restore.isPending}
            onYes={() => restore.mutate(version)}
          >
            <p>{t("What the flow holds now is saved as a version first, so you can undo this.")}</p>
            <p>{t("Its text, name and settings go back. Who may use it stays as it is.")}</p>
            {version.flow_name !== called && <p>{t("It is called “{{name}}” again.", { name: version.flow_name })}</p>}
          </ConfirmButton>
        )}
      </div>
      <Restored name={name} done={restore.data} />
      <ErrorNote error={restore.error ?? mark.error} />
    </li>
  );
}

/** Deletes or undeploys the flow that a session made; the service refuses it once the flow was changed. */
export function TakeBack({ version }: { version: NumberedVersion }) {
  const queries = useQueryClient();
  const { session_id, flow_name: name } = version;
  const { data, error, isPending, mutate } = useMutation({
    mutationFn: (created: "delete" | "undeploy") =>
      dataOf(
        api.POST("/sessions/{session_id}/rollback", {
          params: { path: { session_id: session_id ?? "" }, query: { created } },
        }),
      ),
    onSuccess: () => queries.invalidateQueries(),
  });
  if (data) {
    const said = data.created === "delete" ? t("The flow is deleted.") : t("The flow is undeployed.");
    return (
      <p role="status" className="note ok">
        {said}
      </p>
    );
  }
  return (
    <>
      <ConfirmButton
        label={t("Delete the flow")}
        question={t("Delete “{{name}}” in Flowise?", { name })}
        yes={t("Delete the flow")}
        look="plain"
        busy={isPending}
        onYes={() => mutate("delete")}
      >
        <p>{t("This session made it, and nobody has changed it since.")}</p>
      </ConfirmButton>
      <button type="button" className="button plain" disabled={isPending} onClick={() => mutate("undeploy")}>
        {t("Undeploy")}
      </button>
      <ErrorNote error={error} />
    </>
  );
}

/** What it was called before; nothing where the name stayed. */
function Renamed({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  if (!from || !to || from === to) return null;
  return (
    <p className="words">
      <small>{t("Renamed from “{{before}}” to “{{after}}”", { before: from, after: to })}</small>
    </p>
  );
}

interface ComparisonProps {
  flow: string;
  versions: NumberedVersion[];
  before: string;
  after: string;
  onCompare: (before: string, after: string) => void;
}

function Comparison({ flow, versions, before, after, onCompare }: ComparisonProps) {
  const { data, error, isPending } = useQuery(comparison(flow, before, after));
  const choice = (name: string, value: string, choose: (value: string) => void) => (
    <label className="field">
      {name}
      <select value={value} onChange={(event) => choose(event.target.value)}>
        {versions.map((version) => (
          <option key={version.name} value={version.name}>
            {version.name} {titleOf(version)}
          </option>
        ))}
        <option value={LIVE}>{t("Flowise, now")}</option>
      </select>
    </label>
  );
  return (
    <section className="comparison" aria-label={t("Compare")}>
      {!(versions.length === 1 && versions[0]?.current) && (
        <div className="row">
          {choice(t("From"), before, (value) => onCompare(value, after))}
          {choice(t("To"), after, (value) => onCompare(before, value))}
          <button type="button" className="button" onClick={() => onCompare(after, before)}>
            {t("Swap")}
          </button>
        </div>
      )}
      <ErrorNote error={error} />
      <Renamed from={data?.before_name} to={data?.after_name} />
      {/* As tall before it comes: on phones the versions stand beneath. */}
      {!error && (
        <div className="comparison-picture">
          {isPending && <p className="quiet">{t("Comparing…")}</p>}
          {data && (
            <Suspense>
              <FlowDiff key={`${before} ${after}`} change={data} />
            </Suspense>
          )}
        </div>
      )}
    </section>
  );
}
