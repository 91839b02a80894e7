import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { Problem } from "../api/client";
import { flowGraph, health } from "../api/queries";
import { t } from "../i18n";
import { NextSteps } from "../session/NextSteps";
import { Earlier } from "../session/Turns";
import { isNarrow, type View, Workbench } from "../session/Workbench";
import { ShareButton } from "../share/ShareButton";
import { ErrorNote } from "../ui/ErrorNote";
import { Builder, FREE, useBuild } from "./Builder";
import { ChangeList, ThumbBar } from "./ChangeList";
import { EditingContext } from "./edits";
import { HighlightContext, useHighlight } from "./highlight";
import { PlainOperation } from "./PlainOperation";
import { ReachButton } from "./ReachButton";
import { TryOut } from "./TryOut";
import { TRY_FIELD } from "./tries";
import "../session/session.css";

/** A flow on a server: what was said about it, its picture, and a chat to try it. */
export function FlowPage({ params }: { params: Record<string, string> }) {
  const { id = "", instance, action } = params;
  const { data, error, isPending } = useQuery(flowGraph(id, instance));
  const { error: wrong, ...build } = useBuild(id, data?.flow.instance ?? instance, data?.flow.name ?? "");
  const { editing, drawn, choose, hand, ask } = build;
  const [view, setView] = useState<View>(action === "try" ? "try" : "chat");
  const pointing = useHighlight(() => {
    if (isNarrow()) setView("picture");
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: the fields are there when the flow is
  useEffect(() => {
    if (view === "try") document.querySelector<HTMLElement>(TRY_FIELD)?.focus();
    else if (action) document.querySelector<HTMLElement>(".dock textarea")?.focus();
  }, [view, data === undefined]);

  if (!data) {
    if (isPending) return <p className="quiet">{t("Loading the flow…")}</p>;
    const gone = error instanceof Problem && error.status === 404;
    return (
      <div className="stack">
        <h1>{gone ? t("This flow is not in Flowise any more") : t("The flow cannot be shown")}</h1>
        {!gone && <ErrorNote error={error} />}
        <p className="row">
          <Link href="/">{t("All flows")}</Link>
          <Link href={`/history/${id}`}>{t("History")}</Link>
        </p>
      </div>
    );
  }
  const { flow, graph } = data;
  return (
    <HighlightContext value={pointing}>
      <Workbench
        draws
        view={view}
        onView={setView}
        header={
          <header className="workbench-head">
            <Link href="/" className="back" aria-label={t("All flows")}>
              ←
            </Link>
            <h1 title={flow.name}>{flow.name}</h1>
            <span className={flow.deployed ? "badge ok" : "badge"}>
              {flow.deployed ? t("deployed") : t("not deployed")}
            </span>
            {flow.draft && <span className="badge wait">{t("draft of a session")}</span>}
            <button type="button" className="button plain menu-button" popoverTarget="flow-menu">
              {t("More")}
            </button>
            {/* Part of the bar where there is room for it. */}
            <div id="flow-menu" className="menu" popover="auto">
              <PlainOperation operation="update" flow={flow} instance={flow.instance} className="button plain" />
              <PlainOperation operation="copy" flow={flow} instance={flow.instance} className="button plain" />
              <span className="room" />
              <Link href={`/history/${id}`} className="button plain">
                {t("History")}
              </Link>
              <ShareButton subject="flow" id={id} />
            </div>
            <div className="actions">
              {!flow.draft && <ReachButton chatflowId={id} instance={flow.instance} className="button primary" />}
              <button type="button" className="button wide" onClick={() => setView("try")}>
                {t("Try it")}
              </button>
            </div>
          </header>
        }
        talk={
          <>
            <p className="turn theirs">{t("What should be different? Say it below, in your own words.")}</p>
            <Earlier chatflowId={id} instance={flow.instance} />
            <EditingContext value={editing}>
              <ChangeList
                chatflowId={id}
                hand={hand}
                drawn={drawn}
                onShow={(node) => {
                  setView("picture");
                  choose(node);
                }}
              />
              <NextSteps chatflowId={id} instance={flow.instance} url={flow.url} onTry={() => setView("try")} />
            </EditingContext>
          </>
        }
        picture={
          <Builder
            key={id}
            graph={graph}
            instance={flow.instance}
            {...build}
            error={wrong}
            actions={{ [t("Try it")]: () => setView("try") }}
          />
        }
        bar={<ThumbBar editing={editing} hand={hand} onAdd={() => ask(FREE)} />}
        tryOut={<TryOut chatflowId={id} instance={flow.instance} />}
      />
    </HighlightContext>
  );
}

/** A flow that is not there yet: an empty picture, which is built by hand. */
export function NewFlowPage() {
  const { data } = useQuery(health());
  const [instance = ""] = Object.keys(data?.flowise ?? {});
  const build = useBuild(null, undefined, "");
  const [view, setView] = useState<View>("picture");
  return (
    <Workbench
      draws
      view={view}
      onView={setView}
      header={
        <header className="workbench-head">
          <Link href="/" className="back" aria-label={t("All flows")}>
            ←
          </Link>
          <h1>{t("New flow")}</h1>
        </header>
      }
      talk={
        <>
          <p className="turn theirs">{t("Build it by hand: nothing is written until it is built and tested.")}</p>
          <EditingContext value={build.editing}>
            <ChangeList
              chatflowId={null}
              hand={build.hand}
              drawn={build.drawn}
              onShow={(node) => {
                setView("picture");
                build.choose(node);
              }}
            />
          </EditingContext>
        </>
      }
      picture={<Builder graph={null} instance={instance} {...build} actions={{}} />}
      bar={<ThumbBar editing={build.editing} hand={build.hand} onAdd={() => build.ask(FREE)} />}
      tryOut={null}
    />
  );
}
