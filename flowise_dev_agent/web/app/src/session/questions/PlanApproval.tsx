import { useState } from "react";
import { Markdown } from "../../ui/Markdown";
import { withoutSections } from "../../ui/sections";
import { Choices } from "./Choices";
import { RemarkField, useRemark } from "./Remark";
import type { FormProps, PlanApproval } from "./shapes";
import { TestQuestions } from "./TestQuestions";

/** The plan with its ways to go, the questions it will be tested with and what is missing for it. */
export function PlanApprovalForm({ question, busy, send }: FormProps<PlanApproval>) {
  const { plan, contract, approaches, missing_credentials: missing } = question.data;
  const [approach, setApproach] = useState(approaches[0]?.label);
  const [questions, setQuestions] = useState(contract.test_questions);
  const remark = useRemark();
  const approvable = question.options.some((one) => one.value === "approve");

  function choose(action: string) {
    if (action === "request_changes") {
      const feedback = remark.needed();
      if (feedback) send({ action, feedback });
    } else if (action === "cancel") send({ action });
    else if (remark.unused("Approve")) {
      const asked = questions.map((one) => one.trim()).filter(Boolean);
      const changed = asked.length > 0 && asked.join("\n") !== contract.test_questions.join("\n");
      send({ action, ...(approach ? { approach } : {}), ...(changed ? { test_questions: asked } : {}) });
    }
  }

  return (
    <div className="stack">
      {approvable && <Markdown text={withoutSections(plan, ["Approaches", "Test questions"])} />}
      {approaches.length > 0 && (
        <fieldset className="cards">
          <legend>Approach</legend>
          {approaches.map((one) => (
            <label key={one.label} className="pick">
              <input
                type="radio"
                name="approach"
                checked={approach === one.label}
                onChange={() => setApproach(one.label)}
              />
              <span>
                <strong>{one.label}</strong>
                <br />
                {one.description}
              </span>
            </label>
          ))}
        </fieldset>
      )}
      {missing.length > 0 && (
        <div className="note warn">
          <p>
            Flowise has not exactly one credential of type <strong>{missing.join(", ")}</strong>. You will be asked
            about it next.
          </p>
        </div>
      )}
      {approvable && <TestQuestions questions={questions} onChange={setQuestions} />}
      <RemarkField remark={remark} label={approvable ? "What should be different?" : "What should be built instead?"} />
      <Choices options={question.options} busy={busy} onChoose={choose} />
    </div>
  );
}
