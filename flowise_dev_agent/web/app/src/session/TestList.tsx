import type { Trial, Verdict } from "../api/types";
import { t } from "../i18n";
import { worded, wordedList } from "../i18n/texts";
import { duration } from "../ui/format";
import { Markdown } from "../ui/Markdown";
import { Thumbs } from "./Thumbs";
import { TraceView } from "./TraceView";

const CATEGORIES: Record<NonNullable<Trial["category"]>, string> = {
  STRUCTURE: "Error in the flow",
  LOGIC: "Wrong answer",
  INCOMPLETE: "Incomplete flow",
  CREDENTIAL: "Credential missing or rejected",
  CONFIG: "Setting missing or wrong",
  EXTERNAL: "External service failed",
  TIMEOUT: "Timeout",
  UNKNOWN: "Unknown cause",
};

/** A trial, or what the event of a running test says of it. */
interface Test extends Pick<Trial, "question" | "trial" | "passed" | "answer" | "category"> {
  duration_ms: number | null;
  error?: string;
  texts?: Trial["texts"];
  used_tools?: string[];
  simulated?: string[];
  called?: string[];
  human?: Trial["human"];
  mark?: Trial["mark"];
  trace_sha256?: string | null;
}

interface Props {
  tests: Test[];
  /** The same questions, asked before the change. */
  baseline?: Test[];
  /** What was judged of the answers: until then, that there is one says nothing more. */
  verdict?: Verdict | null;
  /** The session of the tests, which keeps their traces and what the person says of them. */
  session?: string;
}

/** Test questions with the answers of the flow. */
export function TestList({ tests, baseline = [], verdict, session }: Props) {
  if (tests.length === 0) return <p className="quiet">{t("No tests yet.")}</p>;
  const notes = verdict ? wordedList(verdict, "notes") : [];
  const judged = (verdict?.criteria ?? []).some((one) => one.state === "shown" && one.judged_by === "model");
  const trials = Math.max(...tests.map((one) => one.trial));
  return (
    <ul className="plain stack tight" aria-label={t("Tests")}>
      {tests.map((test, index) => {
        const before = baseline.find((one) => one.question === test.question);
        return (
          <li key={`${test.question} ${test.trial} ${test.human ?? ""}`} className="test">
            <div className="row apart">
              <strong className="words">{test.question}</strong>
              <span className="row">
                {test.human && test.human.length > 0 && (
                  <small>
                    {test.human
                      .map((one) => (one === "reject" ? t("Rejected by the test") : t("Approved by the test")))
                      .join(", ")}
                  </small>
                )}
                {trials > 1 && (
                  <small>
                    {t("Trial")} {test.trial}
                  </small>
                )}
                {test.duration_ms !== null && <small>{duration(test.duration_ms)}</small>}
                <Result test={test} judged={judged} />
              </span>
            </div>
            <div className="said">
              <Markdown text={test.answer || worded(test, "error") || t("No answer.")} />
            </div>
            {!test.passed && (
              <p className="problem">
                {[test.category && t(CATEGORIES[test.category]), test.answer && test.error && worded(test, "error")]
                  .filter(Boolean)
                  .join(": ")}
              </p>
            )}
            {test.used_tools && test.used_tools.length > 0 && (
              <p>
                <small>
                  {t("Used:")} {test.used_tools.join(", ")}
                </small>
              </p>
            )}
            {test.simulated && test.simulated.length > 0 && (
              <p>
                <small>
                  {t("Simulated, not really done:")} {test.simulated.join(", ")}
                </small>
              </p>
            )}
            {test.called && test.called.length > 0 && (
              <p>
                <small>
                  {t("Really done, as you said:")} {test.called.join(", ")}
                </small>
              </p>
            )}
            {notes[index] && (
              <p>
                <small>{notes[index]}</small>
              </p>
            )}
            {session && test.answer && (
              <Thumbs session={session} number={index + 1} question={test.question} mark={test.mark ?? null} />
            )}
            {session && test.trace_sha256 && <TraceView session={session} sha256={test.trace_sha256} />}
            {before && (
              <details>
                <summary>{t("Before the change")}</summary>
                <div className="said">
                  <Markdown text={before.answer || worded(before, "error") || t("No answer.")} />
                </div>
              </details>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Result({ test, judged }: { test: Test; judged: boolean }) {
  if (test.passed)
    return judged ? <span className="badge ok">{t("✓ Passed")}</span> : <span className="badge">{t("Answered")}</span>;
  // A conversation that could not be held has no cause, only a reason.
  return test.category ? (
    <span className="badge bad">{t("✗ Failed")}</span>
  ) : (
    <span className="badge">{t("– Not tested")}</span>
  );
}
