/** The flows on the server as cards, with search and filter in the address. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import { Link } from "wouter";
import { caller, flowList, health } from "../api/queries";
import type { FlowFacts } from "../api/types";
import { ListedThumbnail } from "../flow/FlowThumbnail";
import { Promote } from "../flow/Promote";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, plural } from "../ui/format";
import { MoreButton } from "../ui/MoreButton";
import { StatusBadge } from "../ui/StatusBadge";
import { TextInput } from "../ui/TextInput";
import { MOST_SEARCHED, searched } from "../ui/tooLong";
import { useAddress } from "../ui/useAddress";

/** Cards of a page; of many when only some of them are shown. */
export const FLOWS_SHOWN = 12;
const MANY = 100;
const AWAY = new Set(["flowise_unreachable", "flowise_timeout"]);

interface Props {
  instance: string;
  onCopy: (flow: FlowFacts) => void;
}

export function Flows({ instance, onCopy }: Props) {
  const [get, set] = useAddress();
  const text = get("flow");
  const live = get("live") === "1";
  const query = useDeferredValue(searched(text));
  const list = useInfiniteQuery(flowList(query, instance || undefined, live ? MANY : FLOWS_SHOWN, true));
  // Read once, with the form above: a card that comes late must not ask again.
  const servers = Object.keys(useQuery(health()).data?.flowise ?? {});
  const pages = list.data?.pages ?? [];
  const flows = pages.flatMap((page) => page.flows).filter((flow) => !live || flow.deployed);

  return (
    <section className="stack" aria-labelledby="flows-title">
      <div className="row apart">
        <h2 id="flows-title">
          {t("Your flows")} {flows.length > 0 && <small>{pages[0]?.total}</small>}
        </h2>
        <div className="row grow finder" hidden={!text && !live && flows.length === 0}>
          <TextInput
            type="search"
            className="grow"
            aria-label={t("Search flows")}
            placeholder={t("Search by name, node or prompt")}
            most={MOST_SEARCHED}
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
          <Link href="/fleet">{t("State of all flows")}</Link>
        </div>
      </div>
      {/* The form above says more. */}
      {list.error && AWAY.has((list.error as { code?: string }).code ?? "") ? (
        <p className="quiet">{t("Your flows appear here when the Flowise server responds.")}</p>
      ) : (
        <ErrorNote error={list.error} />
      )}
      {list.isLoading && <p className="quiet">{t("Loading the flows…")}</p>}
      {list.data && flows.length === 0 && (
        <p className="quiet">{query || live ? t("No matching flows.") : t("No flows yet. Describe one above.")}</p>
      )}
      {flows.length > 0 && (
        <ul className="plain flow-cards">
          {flows.map((flow) => (
            <FlowCard key={flow.id} flow={flow} others={servers.filter((id) => id !== flow.instance)} onCopy={onCopy} />
          ))}
        </ul>
      )}
      <MoreButton list={list}>{t("More flows")}</MoreButton>
    </section>
  );
}

/** When the flow was changed last, and by whom where that is known. */
function LastChange({ flow }: { flow: FlowFacts }) {
  const { data: person } = useQuery(caller());
  const when = ago(flow.updated);
  const by = flow.changed_by;
  if (!by) return t("{{when}} in Flowise", { when });
  if (by !== person?.name) return t("{{when}} by {{name}}", { when, name: by });
  // Without signing in everybody who opens the page is the same person.
  return person?.signed_in ? t("{{when}} by you", { when }) : when;
}

interface CardProps {
  flow: FlowFacts;
  /** Servers that it is not on. */
  others: string[];
  onCopy: (flow: FlowFacts) => void;
}

function FlowCard({ flow, others, onCopy }: CardProps) {
  const at = `/f/${flow.id}/${flow.instance}`;
  const named = (action: string) => `${action}: ${flow.name}`;
  return (
    <li className="flow-card">
      <Link href={at} className="flow-card-main">
        <ListedThumbnail flow={flow} />
        <span className="flow-name" title={flow.name}>
          {flow.name}
        </span>
      </Link>
      <p className="row">
        <span className={flow.deployed ? "badge ok" : "badge"}>
          {flow.deployed ? t("deployed") : t("not deployed")}
        </span>
        <small>
          {plural(flow.nodes, "node")} · <LastChange flow={flow} />
        </small>
      </p>
      {flow.last_session && (
        <Link href={`/s/${flow.last_session.thread_id}`} className="last-session">
          <span className="clip">{flow.last_session.session_name}</span>
          <StatusBadge session={flow.last_session} />
        </Link>
      )}
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
        <Promote flow={flow} servers={others} />
      </div>
    </li>
  );
}
