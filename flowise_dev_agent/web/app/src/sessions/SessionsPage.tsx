import { type InfiniteData, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { flowList } from "../api/queries";
import { deleteSession, listSessions } from "../api/sessions";
import type { FlowFacts, ListedSession, SessionPage, SessionStatus } from "../api/types";
import { t } from "../i18n";
import { PHASES, STATUS } from "../session/words";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, count, dollars, plural } from "../ui/format";
import { MoreButton } from "../ui/MoreButton";
import { useOther } from "../ui/Person";
import { StatusBadge } from "../ui/StatusBadge";
import { TextInput } from "../ui/TextInput";
import { MOST_SEARCHED, searched } from "../ui/tooLong";
import { useAddress } from "../ui/useAddress";
import { useArrived } from "../ui/useArrived";
import { useDraft } from "../ui/useDraft";
import { FLOWS_SHOWN, Flows } from "./Flows";
import { Inbox } from "./Inbox";
import { NameForm } from "./NameForm";
import { NewSession } from "./NewSession";
import { type Draft, EMPTY } from "./start";
import "./sessions.css";

const ImportFlows = lazy(() => import("./ImportFlows").then((module) => ({ default: module.ImportFlows })));

/** How often the list is refreshed. */
const ACTIVE_MS = 2_500;
const IDLE_MS = 15_000;
const FILTERS: [SessionStatus | undefined, string][] = [
  [undefined, "All"],
  ...(Object.entries(STATUS).map(([status, word]) => [status, word.text]) as [SessionStatus, string][]),
];

/** The start page: a form for a new session, what waits, the flows, and all sessions. */
export function SessionsPage() {
  const [draft, keep] = useDraft<Draft>("start", EMPTY, (kept) => Array.isArray(kept.files));
  const flows = useInfiniteQuery(flowList("", draft.instance || undefined, FLOWS_SHOWN, true));
  const arrived = useArrived();
  const first = flows.data ? flows.data.pages[0]?.total === 0 : flows.isError;
  function copy(flow: FlowFacts) {
    keep({ ...draft, operation: "copy", target: { id: flow.id, name: flow.name }, instance: flow.instance });
    document.getElementById("requirement")?.focus();
    window.scrollTo({ top: 0 });
  }
  return (
    <div className="home">
      <NewSession draft={draft} keep={keep} first={first} arrived={arrived} />
      <div className="home" hidden={!arrived}>
        <Inbox />
        <Flows instance={draft.instance} onCopy={copy} />
        <Suspense>
          <ImportFlows instance={draft.instance} />
        </Suspense>
        <SessionList />
      </div>
    </div>
  );
}

/** All sessions, newest first, with search and filter in the address. */
function SessionList() {
  const [get, set] = useAddress();
  const status = FILTERS.find(([value]) => value === get("status"))?.[0];
  const text = get("q");
  const query = useDeferredValue(searched(text));
  const list = useInfiniteQuery({
    queryKey: ["sessions", status, query],
    queryFn: ({ pageParam, signal }) =>
      listSessions({ status, query: query || undefined, cursor: pageParam ?? undefined }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: (before) => before,
    refetchInterval: ({ state }) => (isActive(state.data) ? ACTIVE_MS : IDLE_MS),
  });
  const sessions = list.data?.pages.flatMap((page) => page.sessions) ?? [];
  const totals = list.data?.pages[0]?.totals;
  // There is nothing to look for.
  const unused = !text && !status && sessions.length === 0;

  return (
    <section className="stack" aria-labelledby="sessions-title">
      <div className="row apart">
        <h2 id="sessions-title">{t("Sessions")}</h2>
        {totals && !unused && (
          <small aria-live="polite">
            {plural(totals.sessions, "session")}
            {totals.input_tokens + totals.output_tokens > 0 &&
              `, ${t("{{tokens}} tokens", { tokens: count(totals.input_tokens + totals.output_tokens) })}, ${dollars(totals.usd)}`}
          </small>
        )}
      </div>
      <div className="row" hidden={unused}>
        <TextInput
          type="search"
          className="grow"
          aria-label={t("Search sessions")}
          placeholder={t("Search names and requirements")}
          most={MOST_SEARCHED}
          value={text}
          onChange={(event) => set("q", event.target.value)}
        />
        <fieldset className="filters">
          <legend className="visually-hidden">{t("Status")}</legend>
          {FILTERS.map(([value, label]) => (
            <label key={label} className={status === value ? "filter on" : "filter"}>
              <input
                type="radio"
                className="visually-hidden"
                name="status"
                checked={status === value}
                onChange={() => set("status", value ?? "")}
              />
              {t(label)}
            </label>
          ))}
        </fieldset>
      </div>
      <ErrorNote error={list.error} />
      {list.isLoading && <p className="quiet">{t("Loading the sessions…")}</p>}
      {list.data && sessions.length === 0 && (
        <p className="quiet">
          {query || status ? t("No matching sessions.") : t("No sessions yet. Describe what you want above.")}
        </p>
      )}
      {sessions.length > 0 && (
        <ul className="plain sessions">
          {sessions.map((session) => (
            <SessionRow key={session.thread_id} session={session} />
          ))}
        </ul>
      )}
      <MoreButton list={list}>
        {list.isFetchingNextPage ? t("Loading older sessions…") : t("Older sessions")}
      </MoreButton>
    </section>
  );
}

function SessionRow({ session }: { session: ListedSession }) {
  const queries = useQueryClient();
  const [naming, setNaming] = useState(false);
  const id = session.thread_id;
  const refresh = () => queries.invalidateQueries({ queryKey: ["sessions"] });
  const remove = useMutation({ mutationFn: () => deleteSession(id), onSuccess: refresh });
  const title = session.session_name || t("New session");
  const { totals } = session;
  const other = useOther(session.started_by);

  return (
    <li className="session-row">
      {!naming ? (
        <Link href={`/s/${id}`} className="session-link">
          <span className="words">{title}</span>
          <small className="words clip">{session.requirement}</small>
        </Link>
      ) : (
        <NameForm session={session} onRenamed={refresh} onClose={() => setNaming(false)} />
      )}
      <span className="session-state">
        <StatusBadge session={session} />
        <small>
          {[
            session.status === "in_progress" && session.phase && t(PHASES[session.phase] ?? session.phase),
            ago(session.updated_at),
            other,
            totals.usd > 0 && dollars(totals.usd),
          ]
            .filter(Boolean)
            .join(" · ")}
        </small>
      </span>
      <span className="actions">
        <button
          type="button"
          className="button plain"
          aria-label={t("Rename {{title}}", { title })}
          onClick={() => setNaming(true)}
        >
          {t("Rename")}
        </button>
        <ConfirmButton
          label={t("Delete")}
          name={t("Delete {{title}}", { title })}
          look="plain"
          question={t("Delete “{{title}}”?", { title })}
          yes={t("Delete it")}
          busy={remove.isPending}
          onYes={() => remove.mutate()}
        >
          <p>{t("Its history is deleted too. The chatflow in Flowise stays.")}</p>
        </ConfirmButton>
      </span>
      <ErrorNote error={remove.error} />
    </li>
  );
}

const isActive = (data: InfiniteData<SessionPage> | undefined): boolean =>
  data?.pages.some((page) => page.sessions.some((one) => one.status === "in_progress")) ?? false;
