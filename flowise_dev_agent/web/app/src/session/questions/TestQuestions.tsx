const MOST = 10;

interface Props {
  questions: string[];
  onChange: (questions: string[]) => void;
}

/** The questions that the finished flow will be asked. */
export function TestQuestions({ questions, onChange }: Props) {
  return (
    <fieldset>
      <legend>Test questions</legend>
      <small>The finished flow is asked these. You may change them.</small>
      <ul className="plain stack tight">
        {questions.map((text, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the place in the list is what a question is known by
          <li key={index} className="row">
            <input
              className="grow"
              aria-label={`Test question ${index + 1}`}
              maxLength={4_000}
              value={text}
              onChange={(event) => onChange(questions.with(index, event.target.value))}
            />
            <button
              type="button"
              className="button plain"
              aria-label={`Remove test question ${index + 1}`}
              onClick={() => onChange(questions.filter((_, other) => other !== index))}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      {questions.length < MOST && (
        <div>
          <button type="button" className="button plain" onClick={() => onChange([...questions, ""])}>
            Add a question
          </button>
        </div>
      )}
    </fieldset>
  );
}
