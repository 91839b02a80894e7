/** What the question forms share: the actions, the feedback field, the findings. */
import { createContext, type ReactNode, type RefObject, useContext, useId, useRef, useState } from "react";
import type { Action, Answer, Finding, Interrupt, Option, SessionView } from "../../api/types";
import { ErrorNote } from "../../ui/ErrorNote";

/** Props of a question form. */
export interface FormProps<Question extends Interrupt> {
  question: Question;
  session: SessionView;
  busy: boolean;
  send: (answer: Answer) => void;
}

/** Actions that must be confirmed, with the label of the confirming button. */
const DESTRUCTIVE: Partial<Record<Action, string>> = {
  rollback: "Roll back now",
  overwrite: "Overwrite the other change",
  cancel: "End the session",
};

/** Why the service refused the last answer; it is shown beside the actions, which are always in sight. */
export const Refusal = createContext<unknown>(null);

interface ChoicesProps {
  options: Option[];
  busy: boolean;
  onChoose: (action: Action) => void;
  /** Actions that another control of the form offers. */
  without?: Action[];
  children?: ReactNode;
}

/**
 * A button for each action that the question offers, with its effect. The first action is the primary one. The bar
 * stays at the bottom of the window while the question is longer than that.
 */
export function Choices({ options, busy, onChoose, without = [], children }: ChoicesProps) {
  const [unconfirmed, setUnconfirmed] = useState<Option | null>(null);
  const refusal = useContext(Refusal);
  const id = useId();
  const offered = options.filter((one) => !without.includes(one.value));

  if (unconfirmed) {
    return (
      <fieldset className="answers destructive" disabled={busy}>
        <legend>Are you sure? {unconfirmed.description}</legend>
        <div className="actions">
          <button
            type="button"
            className="button danger"
            onClick={() => {
              setUnconfirmed(null);
              onChoose(unconfirmed.value);
            }}
          >
            {DESTRUCTIVE[unconfirmed.value]}
          </button>
          {/* biome-ignore lint/a11y/noAutofocus: the question replaces the button that was just pressed */}
          <button type="button" className="button" autoFocus onClick={() => setUnconfirmed(null)}>
            No, go back
          </button>
        </div>
      </fieldset>
    );
  }
  return (
    <div className="answers">
      {children}
      <ErrorNote error={refusal} />
      <div className="answer-row">
        {offered.map((one, index) => (
          <div key={one.value} className="answer">
            <button
              type="button"
              className={index === 0 ? "button primary" : "button"}
              disabled={busy}
              aria-describedby={one.description ? `${id}-${one.value}` : undefined}
              onClick={() => (one.value in DESTRUCTIVE ? setUnconfirmed(one) : onChoose(one.value))}
            >
              {one.label}
            </button>
            {one.description && <small id={`${id}-${one.value}`}>{one.description}</small>}
          </div>
        ))}
      </div>
      {busy && <p className="quiet">Sending your answer…</p>}
    </div>
  );
}

interface Feedback {
  text: string;
  field: RefObject<HTMLTextAreaElement | null>;
  problem: string;
  setText: (text: string) => void;
  /** The trimmed text, or null after asking the person for it. */
  required: () => string | null;
  /** True without text; otherwise the person is told that this action does not send it. */
  empty: (action: string) => boolean;
}

/** Feedback that some actions require and others do not send. It is never lost silently. */
export function useFeedback(): Feedback {
  const [raw, setRaw] = useState("");
  const [problem, setProblem] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const text = raw.trim();
  const complain = (words: string) => {
    setProblem(words);
    field.current?.focus();
  };
  return {
    text: raw,
    field,
    problem,
    setText: (value) => {
      setRaw(value);
      setProblem("");
    },
    required: () => {
      if (!text) complain("Describe what should be different.");
      return text || null;
    },
    empty: (action) => {
      if (text) complain(`"${action}" does not send your feedback. Clear it, or use the other button.`);
      return !text;
    },
  };
}

export function FeedbackField({ feedback, label }: { feedback: Feedback; label: string }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        ref={feedback.field}
        rows={2}
        maxLength={32_000}
        value={feedback.text}
        aria-invalid={feedback.problem !== ""}
        aria-describedby={`${id}-problem`}
        onChange={(event) => feedback.setText(event.target.value)}
      />
      <p id={`${id}-problem`} role="alert" className="problem">
        {feedback.problem}
      </p>
    </div>
  );
}

/** Findings of the checks; what the flow had before is apart. */
export function Findings({ findings }: { findings: Finding[] }) {
  const before = findings.filter((one) => one.origin === "base");
  return (
    <>
      <FindingList label="Findings" findings={findings.filter((one) => one.origin !== "base")} />
      {before.length > 0 && (
        <details>
          <summary>The flow had these before ({before.length})</summary>
          <FindingList label="Findings from before" findings={before} />
        </details>
      )}
    </>
  );
}

function FindingList({ label, findings }: { label: string; findings: Finding[] }) {
  if (findings.length === 0) return null;
  return (
    <ul className="plain stack tight" aria-label={label}>
      {findings.map((one) => (
        <li
          key={`${one.code} ${one.where} ${one.message}`}
          className={one.severity === "error" ? "note bad" : "note warn"}
        >
          <p>{one.message}</p>
          {one.hint && <p>{one.hint}</p>}
          <small>
            {one.code}
            {one.where ? ` at ${one.where}` : ""}
          </small>
        </li>
      ))}
    </ul>
  );
}
