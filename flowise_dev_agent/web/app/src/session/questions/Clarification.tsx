import { useState } from "react";
import type { Action, InterruptOf } from "../../api/types";
import { Choices, type FormProps } from "./controls";

/** The agent's questions about the requirement; each answer is optional. */
export function ClarificationForm({ question, busy, send }: FormProps<InterruptOf<"clarification">>) {
  const [answers, setAnswers] = useState(() => question.data.questions.map(() => ""));

  function choose(action: Action) {
    if (action === "answer") send({ action, answers: answers.map((one) => one.trim()) });
    else if (action === "go_on" || action === "cancel") send({ action });
  }

  return (
    <div className="stack">
      {question.data.questions.map((text, index) => (
        <label key={text} className="field">
          {text}
          <textarea
            rows={2}
            maxLength={8_000}
            value={answers[index]}
            onChange={(event) => setAnswers(answers.with(index, event.target.value))}
          />
        </label>
      ))}
      <Choices options={question.options} busy={busy} onChoose={choose} />
    </div>
  );
}
