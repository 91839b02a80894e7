import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { count, dollars, duration } from "../ui/format";
import type { Note, PhaseGroup, Step } from "./timeline";
import { activity, PHASES } from "./words";

const STATES: Record<Step["state"], { sign: string; text: string }> = {
  running: { sign: "•", text: "running" },
  done: { sign: "✓", text: "done" },
  waiting: { sign: "?", text: "waiting for you" },
  failed: { sign: "✗", text: "failed" },
  restarted: { sign: "↻", text: "interrupted and restarted" },
};
const LABELS: Partial<Record<Note["type"], string>> = {
  decision: "Decision",
  retry: "Retry",
  fallback: "Fallback",
  write: "Write",
  test: "Test",
  artifact: "Result",
  drift: "Node types",
  error: "Error",
  node_error: "Error",
};

/** What the session did, by phase, with the reason for each next step. */
export function Story({ groups, ended }: { groups: PhaseGroup[]; ended: boolean }) {
  const last = groups.at(-1);
  const live = last?.state === "running" || last?.state === "failed";
  const spent = groups.reduce((sum, group) => sum + group.durationMs, 0);
  return (
    <section className="story" aria-labelledby="story-title">
      <details className="turn-card" open={last?.state === "failed"}>
        <summary>
          <h2 id="story-title">{t("What happened")}</h2>
          <small>
            {groups.length === 0 ? (ended ? t("No events.") : t("Waiting for the first step…")) : duration(spent)}
          </small>
        </summary>
        <ol className="plain">
          {groups.map((group) => (
            <li key={group.steps[0]?.seq} className={`phase ${group.state}`}>
              <details open={live && group === last}>
                <summary>
                  <span className="sign" aria-hidden="true">
                    {STATES[group.state].sign}
                  </span>
                  <span className="grow">
                    {t(PHASES[group.phase] ?? group.phase)}
                    <span className="visually-hidden">: {t(STATES[group.state].text)}</span>
                  </span>
                  <small>{group.durationMs > 0 && duration(group.durationMs)}</small>
                </summary>
                <ol className="plain steps">
                  {group.steps.map((step) => (
                    <StepLine key={step.seq} step={step} />
                  ))}
                </ol>
              </details>
            </li>
          ))}
        </ol>
      </details>
    </section>
  );
}

function StepLine({ step }: { step: Step }) {
  const { input, output, usd } = step.tokens;
  return (
    <li className="stack tight">
      <div className="row apart">
        <span>
          {activity(step.node)}
          {step.state !== "done" && <span className="quiet"> ({t(STATES[step.state].text)})</span>}
        </span>
        <small>{step.durationMs !== null && duration(step.durationMs)}</small>
      </div>
      {input + output > 0 && (
        <small>
          {t("{{input}} tokens in, {{output}} out", { input: count(input), output: count(output) })}
          {usd > 0 && `, ${dollars(usd)}`}
        </small>
      )}
      {step.notes.map((note) => (
        <NoteLine key={note.seq} note={note} />
      ))}
    </li>
  );
}

function NoteLine({ note }: { note: Note }) {
  const label = t(LABELS[note.type] ?? note.type);
  const others = note.candidates.filter((candidate) => !candidate.fits);
  const text = (
    <>
      <span className={`label ${note.type}`}>{label}</span> {note.text}
    </>
  );
  if (others.length === 0) return <small className="words">{text}</small>;
  return (
    <details className="why">
      <summary>
        <small className="words">{text}</small>
      </summary>
      <small>{t("Not chosen:")}</small>
      <ul>
        {others.map((candidate) => (
          <li key={`${candidate.to} ${candidate.why}`}>
            <small>
              {candidate.to === "end" ? t("the end") : activity(candidate.to)}
              {t(", if")} {worded(candidate, "why")}
            </small>
          </li>
        ))}
      </ul>
    </details>
  );
}
