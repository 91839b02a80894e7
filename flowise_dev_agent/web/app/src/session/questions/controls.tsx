/** What the question forms share: the actions, the feedback field, the findings. */
import { createContext, type ReactNode, type RefObject, useContext, useId, useRef, useState } from "react";
import type { Action, Answer, Finding, Interrupt, Option, SessionView } from "../../api/types";
import { usePointer } from "../../flow/highlight";
import { t } from "../../i18n";
import { findingText, worded } from "../../i18n/texts";
import { ErrorNote } from "../../ui/ErrorNote";
import { tooLong } from "../../ui/tooLong";
import { useDraft } from "../../ui/useDraft";

/** Props of a question form. */
export interface FormProps<Question extends Interrupt> {
  question: Question;
  session: SessionView;
  busy: boolean;
  /** `files` are ids of those that the answer brings along. */
  send: (answer: Answer, files?: string[]) => void;
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
  /** An action that is not the primary one, although it comes first. */
  doubted?: Action | null;
  /** The field for words, and the action that sends them. */
  composer?: { feedback: Feedback; label: string; sends: Action };
  children?: ReactNode;
}

/**
 * A button for each action that the question offers; the first one is the primary one. Below them the field for words
 * with the action that sends it. All of it stays in sight while the question is longer than the window.
 */
export function Choices({ options, busy, onChoose, without = [], doubted, composer, children }: ChoicesProps) {
  const [unconfirmed, setUnconfirmed] = useState<Option | null>(null);
  const refusal = useContext(Refusal);
  const id = useId();
  const sender = options.find((one) => one.value === composer?.sends);
  const offered = options.filter((one) => one !== sender && !without.includes(one.value));

  if (unconfirmed) {
    return (
      <fieldset className="dock destructive" disabled={busy}>
        <legend>
          {t("Are you sure?")} {worded(unconfirmed, "description")}
        </legend>
        <div className="actions">
          <button
            type="button"
            className="button danger"
            onClick={() => {
              setUnconfirmed(null);
              onChoose(unconfirmed.value);
            }}
          >
            {unconfirmed.value in DESTRUCTIVE ? t(DESTRUCTIVE[unconfirmed.value] ?? "") : worded(unconfirmed, "label")}
          </button>
          {/* biome-ignore lint/a11y/noAutofocus: the question replaces the button that was just pressed */}
          <button type="button" className="button" autoFocus onClick={() => setUnconfirmed(null)}>
            {t("No, go back")}
          </button>
        </div>
      </fieldset>
    );
  }
  // What the service names first; where words are the answer, that is what sends them.
  const leading = options.find((one) => !without.includes(one.value) && one.value !== doubted);
  const press = (one: Option) => (one.value in DESTRUCTIVE ? setUnconfirmed(one) : onChoose(one.value));
  return (
    <div className="dock">
      {children}
      <ErrorNote error={refusal} />
      <div className="dock-row">
        {offered.map((one) => (
          <button
            key={one.value}
            type="button"
            className={one === leading ? "button primary" : "button"}
            disabled={busy}
            aria-describedby={one.description ? `${id}-${one.value}` : undefined}
            onClick={() => press(one)}
          >
            {worded(one, "label")}
          </button>
        ))}
        {offered.map(
          (one) =>
            one.description && (
              <small
                key={one.value}
                id={`${id}-${one.value}`}
                className={one === leading ? "effect" : "visually-hidden"}
              >
                {worded(one, "description")}
              </small>
            ),
        )}
        {busy && <span className="quiet">{t("Sending your answer…")}</span>}
      </div>
      {composer && sender && (
        <div className="composer-row">
          <FeedbackField feedback={composer.feedback} label={composer.label} onSend={() => !busy && press(sender)} />
          <button
            type="button"
            className={sender === leading ? "button primary" : "button"}
            disabled={busy}
            onClick={() => press(sender)}
          >
            {worded(sender, "label")}
          </button>
        </div>
      )}
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
export function useFeedback(key: string): Feedback {
  const [raw, setRaw] = useDraft(`feedback:${key}`, "");
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
      if (!text) complain(t("Describe what should be different."));
      return text && !tooLong(raw) ? text : null;
    },
    empty: (action) => {
      if (text) complain(t('"{{action}}" does not send your feedback. Clear it, or use the other button.', { action }));
      return !text;
    },
  };
}

function FeedbackField({ feedback, label, onSend }: { feedback: Feedback; label: string; onSend: () => void }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id} className="visually-hidden">
        {label}
      </label>
      <textarea
        id={id}
        ref={feedback.field}
        rows={1}
        placeholder={label}
        value={feedback.text}
        aria-invalid={feedback.problem !== ""}
        aria-describedby={`${id}-problem`}
        onChange={(event) => feedback.setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSend();
        }}
      />
      <p id={`${id}-problem`} role="alert" className="problem">
        {feedback.problem || tooLong(feedback.text)}
      </p>
    </div>
  );
}

/** Findings of the checks; what the flow had before is apart. */
export function Findings({ findings }: { findings: Finding[] }) {
  const before = findings.filter((one) => one.origin === "base");
  return (
    <>
      <FindingList label={t("Findings")} findings={findings.filter((one) => one.origin !== "base")} />
      {before.length > 0 && (
        <details>
          <summary>{t("The flow had these before ({{number}})", { number: before.length })}</summary>
          <FindingList label={t("Findings from before")} findings={before} />
        </details>
      )}
    </>
  );
}

/** A finding without the name of its node, with which it begins. */
function problemOf(finding: Finding): string {
  const [text, node] = [findingText(finding), String(finding.params?.node ?? "")];
  return text.startsWith(`${node}:`) || text.startsWith(`${node}\u00a0:`) ? text.slice(node.length) : text;
}

/** Names of nodes that are told at once. */
const FEW = 3;

export function FindingList({ label, findings }: { label: string; findings: Finding[] }) {
  const pointer = usePointer();
  if (findings.length === 0) return null;
  return (
    <ul className="plain stack tight" aria-label={label}>
      {[...Map.groupBy(findings, problemOf).entries()].map(([problem, same]) => {
        const [one] = same;
        if (!one) return null;
        // One rule at several nodes is told once.
        const number = same.length;
        const where = same.map((each) => each.where).filter((id) => /_\d+$/.test(id));
        const names = problem === findingText(one) ? [] : [...new Set(same.map((each) => each.params?.node))];
        const named = [...names.slice(0, FEW), ...(names.length > FEW ? ["…"] : [])].join(", ");
        return (
          <li
            key={`${one.code} ${one.where} ${one.message}`}
            className={one.severity === "error" ? "note bad" : "note warn"}
          >
            <p>
              {`${named}${problem}`} {number > 1 && <small>{t("{{number}} times", { number })}</small>}
            </p>
            {where.length > 0 && (
              <button type="button" className="button small" {...pointer(where)}>
                {t("Show")}
              </button>
            )}
            <details className="for-experts">
              <summary>
                <code>{[one.code, one.where].filter(Boolean).join(" · ")}</code>
              </summary>
              <code className="words">{[one.detail, one.hint].filter(Boolean).join(" ")}</code>
            </details>
          </li>
        );
      })}
    </ul>
  );
}
