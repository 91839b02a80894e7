import type { ReactNode } from "react";
import type { Verdict } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";

export const HEADLINES: Record<NonNullable<Verdict["headline"]>, string> = {
  works: "Works: every part and every criterion was shown.",
  runs: "It answers; not everything was shown.",
  fails: "Fails.",
  not_tested: "Not tested.",
};
type Level = Verdict["criteria"][number]["level"];
type State = Verdict["criteria"][number]["state"] | Verdict["parts"][number]["state"];
const STATES: Record<State, [sign: string, word: string]> = {
  shown: ["✓", "Shown"],
  not_shown: ["?", "Not shown"],
  failed: ["✗", "Failed"],
  not_tested: ["–", "Not tested"],
  done: ["✓", "Done"],
  assumed: ["≈", "Assumed"],
  missing: ["✗", "Missing"],
  not_possible: ["✗", "Not possible"],
};

/** How strong a proof is, where it is weaker than a test in which everything ran. */
const LEVELS: Record<Exclude<NonNullable<Level>, "verified">, string> = {
  simulated: "Simulated",
  person: "Judged by you",
  setting: "Set so",
};

/** A line with its state as sign and word, so that it does not depend on colour. */
export function StateLine({ state, level, children }: { state: State; level?: Level; children: ReactNode }) {
  const [sign, plain] = STATES[state];
  const word = level && level !== "verified" ? LEVELS[level] : plain;
  return (
    <li className={`state-line ${state}`}>
      <span className="state">
        <span aria-hidden="true">{sign}</span> {t(word)}
      </span>
      <span className="words">{children}</span>
    </li>
  );
}

/** The headline, and of a flow that runs what is known of its answers. */
function headlineOf({ headline, criteria, done }: Verdict): string {
  if (!headline) return "";
  if (headline === "not_tested" && !done) return t("Could not be tested.");
  if (headline !== "runs") return t(HEADLINES[headline]);
  const shown = criteria.filter(({ state }) => state === "shown").length;
  const judged = criteria.some((one) => one.judged_by === "model" || one.judged_by === "person");
  const known =
    shown > 0 && shown === criteria.length
      ? t("All criteria were shown, but not every part of your request.")
      : shown > 0
        ? t("Shown: {{a}} of {{b}} criteria.", { a: shown, b: criteria.length })
        : judged && t("That the answers are what you asked for was not shown.");
  const unread = !judged && t("No model judged the answers: please read them.");
  return [t("It answers."), known, unread].filter(Boolean).join(" ");
}

/** What is read without being asked for. */
const WRONG = new Set<State>(["failed", "missing", "not_possible"]);

/** What the tests show: the headline, and folded unless something is wrong, the parts of the request, the criteria with their evidence. */
export function VerdictView({ verdict }: { verdict: Verdict }) {
  const { headline, parts = [], criteria = [] } = verdict;
  if (!headline) return null;
  const [reason, ...others] = new Set(criteria.map((one) => worded(one, "reason")));
  const shared = criteria.length > 1 && others.length === 0 ? reason : "";
  const wrong = [...parts, ...criteria].some(({ state }) => WRONG.has(state));
  return (
    <section className="stack tight" aria-label={t("Verdict")}>
      <strong>{headlineOf(verdict)}</strong>
      {parts.length + criteria.length > 0 && (
        <details open={wrong}>
          <summary>{t("What was checked ({{number}})", { number: parts.length + criteria.length })}</summary>
          <div className="stack tight">
            {parts.length > 0 && (
              <ul className="plain states" aria-label={t("Parts of the request")}>
                {parts.map((part) => (
                  <StateLine key={part.id} state={part.state} level={part.level}>
                    {t("“{{words}}”", { words: part.quote })} {part.reason && <small>{worded(part, "reason")}</small>}
                  </StateLine>
                ))}
              </ul>
            )}
            {criteria.length > 0 && (
              <ul className="plain states" aria-label={t("Criteria")}>
                {criteria.map((item) => (
                  <StateLine key={item.id} state={item.state} level={item.level}>
                    {worded(item, "text")} {item.reason && !shared && <small>{worded(item, "reason")}</small>}
                    {item.evidence.map((one) => (
                      <small key={`${one.trial} ${one.quote}`}>
                        {" "}
                        {t("Test {{number}}: “{{quote}}”", { number: one.trial, quote: one.quote })}
                      </small>
                    ))}
                  </StateLine>
                ))}
              </ul>
            )}
            {shared && <small>{shared}</small>}
          </div>
        </details>
      )}
    </section>
  );
}
