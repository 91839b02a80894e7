/** What a share link shows: conversation, plan, picture and versions of one session or flow, to be read only. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { Problem, sharedApi } from "../api/client";
import type { SharedView } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { ConversationCard, Turns } from "../session/Turns";
import { type View, Workbench } from "../session/Workbench";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, day } from "../ui/format";
import { Markdown } from "../ui/Markdown";
import { StatusBadge } from "../ui/StatusBadge";
import "../session/session.css";
import "../flow/history.css";

const SharedPicture = lazy(() => import("./SharedPicture").then((module) => ({ default: module.SharedPicture })));
/** How often a session at work is looked at again. */
const EVERY_MS = 15_000;

export function SharedPage({ params }: { params: Record<string, string> }) {
  const token = params.token ?? "";
  // The key resets all state when another link is opened.
  return <SharedByToken key={token} token={token} />;
}

function SharedByToken({ token }: { token: string }) {
  const { data, error, isPending } = useQuery({
    queryKey: ["shared", token],
    queryFn: async ({ signal }) => (await sharedApi(token).GET("/shared", { signal })).data as SharedView,
    placeholderData: keepPreviousData,
    refetchInterval: (query) => (query.state.data?.sessions.some((one) => !one.outcome) ? EVERY_MS : false),
  });
  const title = data?.title ?? "";
  useEffect(() => {
    document.title = title ? `${title} · Flowise Dev Agent` : "Flowise Dev Agent";
  }, [title]);
  if (data) return <Shown token={token} shared={data} />;
  if (isPending) return <p className="quiet">{t("Loading…")}</p>;
  const wrong = error instanceof Problem && error.status === 401;
  const over = error instanceof Problem && error.status === 410;
  return (
    <div className="stack">
      <h1>{over ? t("This link has ended") : wrong ? t("This link is not valid") : t("The link cannot be opened")}</h1>
      {over || wrong ? (
        <p>{t("It has run out, was revoked, or is not whole. Ask whoever sent it to you for another one.")}</p>
      ) : (
        <ErrorNote error={error} />
      )}
    </div>
  );
}

function Shown({ token, shared }: { token: string; shared: SharedView }) {
  const [view, setView] = useState<View>("chat");
  const newest = shared.versions[0]?.name ?? null;
  // A session is shown as it plans its flow, a flow as it was written last.
  const [version, setVersion] = useState<string | null>(shared.preview ? null : newest);
  const { sessions, plan, preview, versions } = shared;
  const only = shared.subject === "session" ? sessions[0] : undefined;
  return (
    <Workbench
      view={view}
      onView={setView}
      header={
        <header className="workbench-head">
          <h1 title={shared.title}>{shared.title}</h1>
          {only && <StatusBadge session={only} />}
          <span className="badge">{t("read-only")}</span>
          <small>{t("Until {{date}}", { date: day(shared.ends_at) })}</small>
        </header>
      }
      talk={
        <>
          {only ? (
            <>
              <Turns turns={only.turns} open={null} speaker={t("Person")} />
              {only.answer && <Markdown text={only.answer} />}
            </>
          ) : (
            sessions.map((one) => <ConversationCard key={one.thread_id} session={one} speaker={t("Person")} />)
          )}
          {plan && (
            <details className="turn-card" open>
              <summary>
                <h2>{t("Plan")}</h2>
              </summary>
              <div className="earlier">
                <Markdown text={plan} level={3} links={false} />
              </div>
            </details>
          )}
          {versions.length > 0 && (
            <section className="stack tight" aria-labelledby="shared-versions">
              <h2 id="shared-versions" className="small-title">
                {t("Versions")}
              </h2>
              <ol className="plain version-list">
                {versions.map((one) => (
                  <li key={one.name} className={one.name === version ? "version shown" : "version"}>
                    <button
                      type="button"
                      className="version-title"
                      aria-pressed={one.name === version}
                      onClick={() => {
                        setVersion(one.name === version && preview ? null : one.name);
                        setView("picture");
                      }}
                    >
                      <strong>{one.name}</strong> <span className="words">{worded(one, "title")}</span>
                    </button>
                    <p className="row">
                      {one.current && <span className="badge ok">{t("current")}</span>}
                      {one.restores && <span className="badge">{t("as {{name}}", { name: one.restores })}</span>}
                      <small>{ago(one.created_at)}</small>
                    </p>
                  </li>
                ))}
              </ol>
            </section>
          )}
        </>
      }
      picture={
        <Suspense fallback={<div className="empty-picture" />}>
          <SharedPicture token={token} preview={preview} version={version} />
        </Suspense>
      }
      tryOut={null}
    />
  );
}
