import type { Action, InterruptOf } from "../../api/types";
import { tooLong } from "../../ui/tooLong";
import { useDraft } from "../../ui/useDraft";
import { Choices, type FormProps } from "./controls";

/** Of one answer. */
const MOST_CHARACTERS = 8_000;

/** The agent's questions about the requirement; each answer is optional. */
export function ClarificationForm({ question, busy, send }: FormProps<InterruptOf<"clarification">>) {
  const blank = question.data.questions.map(() => "");
  const [answers, setAnswers] = useDraft(`answers:${question.id}`, blank, (kept) => kept.length === blank.length);

  function choose(action: Action) {
    if (action === "answer") {
      if (!answers.some((one) => tooLong(one, MOST_CHARACTERS)))
        send({ action, answers: answers.map((one) => one.trim()) });
    } else if (action === "go_on" || action === "cancel") send({ action });
  }

  return (
    <div className="stack">
      {question.data.questions.map((text, index) => (
        <label key={text} className="field">
          {text}
          <textarea
            rows={2}
            value={answers[index]}
            onChange={(event) => setAnswers(answers.with(index, event.target.value))}
          />
          <span role="alert" className="problem">
            {tooLong(answers[index] ?? "", MOST_CHARACTERS)}
          </span>
        </label>
      ))}
      <Choices options={question.options} busy={busy} onChoose={choose} />
    </div>
  );
}
