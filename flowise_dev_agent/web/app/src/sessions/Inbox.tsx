import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { listSessions } from "../api/sessions";
import type { ListedSession } from "../api/types";
import { t } from "../i18n";
import { questionTitle } from "../session/questionTitles";
import { ago } from "../ui/format";
import { NoticeButton } from "../ui/NoticeButton";
import { useOther } from "../ui/Person";

const REFRESH_MS = 5_000;
const SHOWN = 5;

/** Sessions that wait for the person; nothing when none does. */
export function Inbox() {
  const { data } = useQuery({
    queryKey: ["sessions", "inbox"],
    queryFn: ({ signal }) => listSessions({ status: "pending_interrupt", limit: SHOWN + 1 }, signal),
    refetchInterval: REFRESH_MS,
  });
  if (!data || data.sessions.length === 0) return null;
  return (
    <section className="stack tight" aria-labelledby="inbox-title">
      <div className="row apart">
        <h2 id="inbox-title">{t("Waits for you")}</h2>
        <NoticeButton />
      </div>
      <ul className="plain inbox">
        {data.sessions.slice(0, SHOWN).map((one) => (
          <Waiting key={one.thread_id} session={one} />
        ))}
      </ul>
      {data.sessions.length > SHOWN && <small>{t("More below, under “Waiting for you”.")}</small>}
    </section>
  );
}

function Waiting({ session }: { session: ListedSession }) {
  const other = useOther(session.started_by);
  const { interrupt } = session;
  return (
    <li>
      <Link href={`/s/${session.thread_id}`}>
        <span className="badge wait">
          {interrupt ? t(questionTitle(interrupt.type, interrupt.reason)) : t("Waiting for you")}
        </span>
        <span className="clip grow">{session.session_name || session.requirement}</span>
        <small>{[other, ago(session.updated_at)].filter(Boolean).join(" · ")}</small>
      </Link>
    </li>
  );
}
