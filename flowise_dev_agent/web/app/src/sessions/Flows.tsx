/** The flows on the server as cards, with search and filter in the address. */
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import { Link, useSearchParams } from "wouter";
import { flowList } from "../api/queries";
import type { FlowFacts } from "../api/types";
import { LiveThumbnail } from "../flow/FlowThumbnail";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, plural } from "../ui/format";

/** Cards of a page; the service lists at most 100 flows, a search finds all of them. */
export const FLOWS_SHOWN = 12;
const MOST = 100;

interface Props {
  instance: string;
  onCopy: (flow: FlowFacts) => void;
}

export function Flows({ instance, onCopy }: Props) {
  const [params, setParams] = useSearchParams();
  const text = params.get("flow") ?? "";
  const live = params.get("live") === "1";
  const all = params.get("all") === "1";
  const query = useDeferredValue(text.trim());
  const list = useQuery(flowList(query, instance || undefined, live || all || query ? MOST : FLOWS_SHOWN + 1));
  const found = (list.data?.flows ?? []).filter((flow) => !live || flow.deployed);
  const flows = all || query ? found : found.slice(0, FLOWS_SHOWN);
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );

  return (
    <section className="stack" aria-labelledby="flows-title">
      <div className="row apart">
        <h2 id="flows-title">{t("Your flows")}</h2>
        <div className="row grow finder">
          <input
            type="search"
            className="grow"
            aria-label={t("Search flows")}
            placeholder={t("Search by name, node or prompt")}
            maxLength={200}
            value={text}
            onChange={(event) => set("flow", event.target.value)}
          />
          <label className={live ? "filter on" : "filter"}>
            <input
              type="checkbox"
              className="visually-hidden"
              checked={live}
              onChange={(event) => set("live", event.target.checked ? "1" : "")}
            />
            {t("Deployed only")}
          </label>
        </div>
      </div>
      <ErrorNote error={list.error} />
      {list.isLoading && <p className="quiet">{t("Loading the flows…")}</p>}
      {list.data && flows.length === 0 && (
        <p className="quiet">{query || live ? t("No matching flows.") : t("No flows yet. Describe one above.")}</p>
      )}
      {flows.length > 0 && (
        <ul className="plain flow-cards">
          {flows.map((flow) => (
            <FlowCard key={flow.id} flow={flow} onCopy={onCopy} />
          ))}
        </ul>
      )}
      {!all && !query && found.length > FLOWS_SHOWN && (
        <div>
          <button type="button" className="button" onClick={() => set("all", "1")}>
            {t("More flows")}
          </button>
        </div>
      )}
    </section>
  );
}

function FlowCard({ flow, onCopy }: { flow: FlowFacts; onCopy: (flow: FlowFacts) => void }) {
  const at = `/f/${flow.id}/${flow.instance}`;
  const named = (action: string) => `${action}: ${flow.name}`;
  return (
    <li className="flow-card">
      <Link href={at} className="flow-card-main">
        <LiveThumbnail id={flow.id} instance={flow.instance} />
        <span className="flow-name">{flow.name}</span>
      </Link>
      <p className="row">
        <span className={flow.deployed ? "badge ok" : "badge"}>
          {flow.deployed ? t("deployed") : t("not deployed")}
        </span>
        <small>
          {plural(flow.nodes, "node")} · {ago(flow.updated)}
        </small>
      </p>
      <div className="card-actions">
        <Link href={`${at}/change`} aria-label={named(t("Change"))}>
          {t("Change")}
        </Link>
        <Link href={`${at}/ask`} aria-label={named(t("Ask"))}>
          {t("Ask")}
        </Link>
        <button type="button" aria-label={named(t("Copy"))} onClick={() => onCopy(flow)}>
          {t("Copy")}
        </button>
        <Link href={`${at}/try`} aria-label={named(t("Try"))}>
          {t("Try")}
        </Link>
        <Link href={`/history/${flow.id}`} aria-label={named(t("History"))}>
          {t("History")}
        </Link>
      </div>
    </li>
  );
}
