import { useState } from "react";
import { plural } from "../../ui/format";
import { TestList } from "../TestList";
import { Choices } from "./Choices";
import { Findings } from "./Findings";
import { RemarkField, useRemark } from "./Remark";
import type { FormProps, ResultReview } from "./shapes";

/** The tested flow: its answers, what is still open, and the decision. */
export function ResultReviewForm({ question, session, busy, send }: FormProps<ResultReview>) {
  const { chatflow, draft, tests, baseline, verdict, regressions, warnings, placeholders, notes, change } =
    question.data;
  const remark = useRemark();
  const [deploy, setDeploy] = useState(true);
  const updates = session.operation_mode === "update";
  const worse = [...new Set(regressions.filter((one) => one.worse).map((one) => one.question))];

  function choose(action: string) {
    if (action === "iterate") {
      const feedback = remark.needed();
      if (feedback) send({ action, feedback });
    } else if (remark.unused(action === "accept" ? "Accept" : "Roll back")) {
      send(action === "accept" ? { action, deploy } : { action });
    }
  }

  return (
    <div className="stack">
      <p className="row">
        <a className="button" href={draft?.url ?? chatflow.url} target="_blank" rel="noopener noreferrer">
          Open {draft ? "the draft" : "it"} in Flowise
        </a>
        {draft && (
          <span className="quiet">
            The change is on a draft. <a href={chatflow.url}>{chatflow.name}</a> is untouched until you accept.
          </span>
        )}
      </p>
      <TestList tests={tests} baseline={baseline} notes={verdict.notes ?? []} />
      {change?.summary && (
        <p>
          <strong>What changed:</strong> {change.summary}. The picture of it is below.
        </p>
      )}
      {verdict.reason && <p className="quiet">{verdict.reason}</p>}
      {worse.length > 0 && (
        <div className="note warn">
          <p>{plural(worse.length, "question")} went better before the change:</p>
          <ul>
            {worse.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </div>
      )}
      {placeholders.length > 0 && (
        <div className="note warn">
          <p>Still to be filled in:</p>
          <ul>
            {placeholders.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </div>
      )}
      <Findings findings={warnings} />
      {notes.map((text) => (
        <p key={text} className="quiet">
          {text}
        </p>
      ))}
      <RemarkField remark={remark} label="What should be different?" />
      {!updates && (
        <label className="check">
          <input type="checkbox" checked={deploy} onChange={(event) => setDeploy(event.target.checked)} />
          Deploy the chatflow when I accept
        </label>
      )}
      <Choices options={question.options} busy={busy} onChoose={choose} />
    </div>
  );
}
