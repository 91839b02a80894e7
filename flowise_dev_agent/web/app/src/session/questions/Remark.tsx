import { type RefObject, useId, useRef, useState } from "react";

interface Remark {
  /** Trimmed. */
  text: string;
  field: RefObject<HTMLTextAreaElement | null>;
  problem: string;
  setText: (text: string) => void;
  /** The text, or null after the person was asked for it. */
  needed: () => string | null;
  /** False after saying that the action would leave the written remark behind. */
  unused: (action: string) => boolean;
}

/** A remark that some actions need and others would lose: neither happens silently. */
export function useRemark(): Remark {
  const [raw, setRaw] = useState("");
  const [problem, setProblem] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const text = raw.trim();
  const say = (words: string) => {
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
    needed: () => {
      if (!text) say("Please say what should be different.");
      return text || null;
    },
    unused: (action) => {
      if (text) say(`"${action}" would leave your remark behind. Clear it, or send it with the other button.`);
      return !text;
    },
  };
}

export function RemarkField({ remark, label }: { remark: Remark; label: string }) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        ref={remark.field}
        rows={2}
        maxLength={32_000}
        value={remark.text}
        aria-invalid={remark.problem !== ""}
        aria-describedby={`${id}-problem`}
        onChange={(event) => remark.setText(event.target.value)}
      />
      <p id={`${id}-problem`} role="alert" className="problem">
        {remark.problem}
      </p>
    </div>
  );
}
