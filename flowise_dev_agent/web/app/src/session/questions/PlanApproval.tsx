import { type ReactNode, useState } from "react";
import type { Action, InterruptOf } from "../../api/types";
import { t } from "../../i18n";
import { AddCredential } from "../../ui/AddCredential";
import { useDraft } from "../../ui/useDraft";
import { Choices, Findings, type FormProps, useFeedback } from "./controls";

const MAX_QUESTIONS = 10;

/** The plan with its approaches, test questions and missing credentials. */
export function PlanApprovalForm({ question, session, busy, send }: FormProps<InterruptOf<"plan_approval">>) {
  const { contract, approaches, missing_credentials: missing } = question.data;
  const [approach, setApproach] = useState(approaches[0]?.label);
  const [questions, setQuestions] = useDraft(`questions:${question.id}`, contract.test_questions);
  const feedback = useFeedback(question.id);
  const approvable = question.options.some((one) => one.value === "approve");

  function choose(action: Action) {
    if (action === "request_changes") {
      const text = feedback.required();
      if (text) send({ action, feedback: text });
    } else if (action === "cancel") send({ action });
    else if (action === "approve" && feedback.empty(t("Approve"))) {
      const asked = questions.map((one) => one.trim()).filter(Boolean);
      const changed = asked.length > 0 && asked.join("\n") !== contract.test_questions.join("\n");
      send({ action, ...(approach ? { approach } : {}), ...(changed ? { test_questions: asked } : {}) });
    }
  }

  return (
    <div className="stack">
      {approvable && <PlanSections data={question.data} />}
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
            Flowise does not have exactly one credential of type <strong>{missing.join(", ")}</strong>. You choose or
            create it in the next step, or add it now.
          </p>
          {missing.map((type) => (
            <AddCredential key={type} type={type} instance={session.instance} />
          ))}
        </div>
      )}
      {approvable && <TestQuestions questions={questions} onChange={setQuestions} />}
      <Choices
        options={question.options}
        busy={busy}
        onChoose={choose}
        composer={{
          feedback,
          label: approvable ? t("What should be different?") : t("What should be built instead?"),
          sends: "request_changes",
        }}
      />
    </div>
  );
}

type PlanData = InterruptOf<"plan_approval">["data"];
type Details = NonNullable<PlanData["details"]>;

const told = (part: PlanData["not_done"][number]) =>
  `\u201c${part.quote}\u201d: ${part.state === "not_understood" ? "not understood: " : ""}${part.reason}`;

const named = (node: Details["removed"][number]) => (
  <span key={node.node_id}>
    {node.label && <strong>{node.label} </strong>}
    <code>{node.node_id}</code>
  </span>
);

/** A value that the plan sets, beside the one that it replaces. */
function Value({ value }: { value: Details["values"][number] }) {
  const text = (one: unknown) => (typeof one === "string" ? one : JSON.stringify(one));
  return (
    <>
      <code>{value.param}</code> of <strong>{value.node}</strong>
      <span className="plan-value">
        {value.old !== null && (
          <span>
            <small>Now</small>
            <span className="plan-text">{text(value.old)}</span>
          </span>
        )}
        <span>
          <small>{value.old === null ? "Value" : "Then"}</small>
          <span className="plan-text">{text(value.new)}</span>
        </span>
      </span>
      {value.loses_text && <p className="note warn">The text that is there now goes.</p>}
    </>
  );
}

/** What the plan says, without what has a control of its own. */
function PlanSections({ data }: { data: PlanData }) {
  const { contract, details } = data;
  const code = (names: string[]) => names.map((name) => <code key={name}>{name}</code>);
  const sections: [string, ReactNode[]][] = [
    [
      "Nodes",
      contract.nodes.map((node) => (
        <span key={node.node_id}>
          <strong>{node.node_name}</strong> (<code>{node.node_id}</code>): {node.purpose}
        </span>
      )),
    ],
    ["Values", details?.values.map((one) => <Value key={`${one.node_id}.${one.param}`} value={one} />) ?? []],
    ["Removed or replaced", details ? details.removed.map(named) : code(contract.removals)],
    ["Kept as it is", details ? details.kept.map(named) : code(contract.kept)],
    ["Assumed", data.assumed.map(told)],
    ["Not done", data.not_done.map(told)],
    ["What an approval allows", (details?.allows ?? []).map((text) => text.replaceAll("`", ""))],
    ["Steps", contract.steps],
    ["Credentials", code(contract.credential_requirements)],
    ["Personal data", code(contract.pii_fields)],
    ["Placeholders to fill in", contract.placeholders],
    ["Success criteria", contract.success_criteria],
  ];
  return (
    <div className="markdown">
      <h3>{contract.flow_name}</h3>
      <p>{contract.goal}</p>
      <Findings findings={contract.findings} />
      {sections
        .filter(([, items]) => items.length > 0)
        .map(([title, items]) => (
          <section key={title}>
            <h4>{title}</h4>
            <ul>
              {items.map((item, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a fixed list
                <li key={index}>{item}</li>
              ))}
            </ul>
          </section>
        ))}
    </div>
  );
}

interface TestQuestionsProps {
  questions: string[];
  onChange: (questions: string[]) => void;
}

/** The questions that the flow is tested with. */
function TestQuestions({ questions, onChange }: TestQuestionsProps) {
  return (
    <fieldset>
      <legend>Test questions</legend>
      <small>The flow is tested with these questions. You can change them.</small>
      <ul className="plain stack tight">
        {questions.map((text, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a question is identified by its position
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
      {questions.length < MAX_QUESTIONS && (
        <div>
          <button type="button" className="button plain" onClick={() => onChange([...questions, ""])}>
            Add a question
          </button>
        </div>
      )}
    </fieldset>
  );
}
