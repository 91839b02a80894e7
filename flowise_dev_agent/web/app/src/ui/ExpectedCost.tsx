import { useQuery } from "@tanstack/react-query";
import { expectedCost } from "../api/queries";
import { t } from "../i18n";
import { dollars, plural } from "./format";

/** What a session will probably cost, before it is started; nothing when no such session is recorded. */
export function ExpectedCost({ kind }: { kind?: "create" | "update" | "copy" }) {
  const { data } = useQuery(expectedCost(kind));
  if (!data) return null;
  const parts = [data.usd != null && dollars(data.usd), data.seconds != null && inWords(data.seconds)].filter(Boolean);
  if (parts.length === 0) return null;
  return (
    <small title={t("Average of {{sessions}}.", { sessions: plural(data.sessions, "recorded session") })}>
      {t("about {{cost}}", { cost: parts.join(", ") })}
    </small>
  );
}

/** "40 s", "3 min": more would promise too much. */
const inWords = (seconds: number): string =>
  seconds < 100 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;
