import { useState } from "react";
import { Choices } from "./controls";
import type { Clarification, FormProps } from "./shapes";

/** The agent's questions about the requirement; each answer is optional. */
export function ClarificationForm({ question, busy, send }: FormProps<Clarification>) {
  const [answers, setAnswers] = useState(() => question.data.questions.map(() => ""));
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
      <Choices
        options={question.options}
        busy={busy}
        onChoose={(action) =>
          send(action === "answer" ? { action, answers: answers.map((one) => one.trim()) } : { action })
        }
      />
    </div>
  );
}
