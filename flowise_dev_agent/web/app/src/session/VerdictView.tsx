import type { Verdict } from "../api/types";

export const HEADLINES: Record<NonNullable<Verdict["headline"]>, string> = {
  works: "Works: every part and every criterion was shown.",
  runs: "Runs, but not everything was shown.",
  fails: "Fails.",
  not_tested: "Not tested.",
};
const CRITERIA: Record<Verdict["criteria"][number]["state"], string> = {
  shown: "✓ Shown",
  not_shown: "? Not shown",
  failed: "✗ Failed",
  not_tested: "– Not tested",
};
const PARTS: Record<Verdict["parts"][number]["state"], string> = {
  done: "✓ Done",
  assumed: "≈ Assumed",
  not_shown: "? Not shown",
  missing: "✗ Missing",
  not_possible: "✗ Not possible",
};

const tone = (state: string) => (["shown", "done", "assumed"].includes(state) ? "badge ok" : "badge");

/** What the tests show: the headline, the parts of the request, the criteria with their evidence. */
export function VerdictView({ verdict }: { verdict: Verdict }) {
  const { headline, parts = [], criteria = [] } = verdict;
  if (!headline) return null;
  return (
    <section className="stack tight" aria-label="Verdict">
      <strong>{HEADLINES[headline]}</strong>
      {parts.length > 0 && (
        <ul className="plain stack tight" aria-label="Parts of the request">
          {parts.map((part) => (
            <li key={part.id} className="row apart">
              <span className="words">
                “{part.quote}” {part.reason && <small>{part.reason}</small>}
              </span>
              <span className={tone(part.state)}>{PARTS[part.state]}</span>
            </li>
          ))}
        </ul>
      )}
      {criteria.length > 0 && (
        <ul className="plain stack tight" aria-label="Criteria">
          {criteria.map((item) => (
            <li key={item.id} className="row apart">
              <span className="words">
                {item.text} {item.reason && <small>{item.reason}</small>}
                {item.evidence.map((one) => (
                  <small key={`${one.trial} ${one.quote}`}>
                    {" "}
                    Test {one.trial}: “{one.quote}”
                  </small>
                ))}
              </span>
              <span className={tone(item.state)}>{CRITERIA[item.state]}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
