import { useContext, useRef, useState } from "react";
import { Link } from "wouter";
import type { Action, DesignForm, InterruptOf } from "../../api/types";
import { EditingContext, filesOf, sentEdits } from "../../flow/edits";
import { PlainOperation } from "../../flow/PlainOperation";
import { useStores } from "../../flow/stores";
import { t } from "../../i18n";
import { AddCredential } from "../../ui/AddCredential";
import { TextInput } from "../../ui/TextInput";
import { tooLong } from "../../ui/tooLong";
import { useDraft } from "../../ui/useDraft";
import { EditBar } from "../EditBar";
import { Choices, type FormProps, useFeedback } from "./controls";
import { PlanSections } from "./PlanSections";
import { StarterForm } from "./StarterForm";

const MAX_QUESTIONS = 10;
/** Of a test question. */
const MOST_CHARACTERS = 4_000;
/** What the person's words are, where no plan can be approved. */
const WORDED_AS: Record<string, () => string> = {
  question: () => t("Your answer"),
  declined: () => t("What should be built instead?"),
  starter: () => t("Or say it in other words"),
};

const STORE_NODE = /^documentStore/;

/** The plan with its approaches, test questions and missing credentials. */
export function PlanApprovalForm({ question, session, busy, send }: FormProps<InterruptOf<"plan_approval">>) {
  const { contract, approaches, form, starter, target, missing_credentials: missing } = question.data;
  const [approach, setApproach] = useState(approaches[0]?.label);
  const [questions, setQuestions] = useDraft(`questions:${question.id}`, contract.test_questions);
  const addresses = question.data.details?.addresses ?? [];
  const [real, setReal] = useDraft<string[]>(`real:${question.id}`, []);
  const feedback = useFeedback(question.id);
  const editing = useContext(EditingContext);
  const edits = editing && editing.edits.length > 0 ? editing.edits : null;
  const approvable = question.options.some((one) => one.value === "approve");

  const completes = question.reason === "starter" && !approvable;
  const element = useRef<HTMLFormElement>(null);
  const [isChanging, setChanging] = useState(false);
  const sendForm = (design: DesignForm, files: string[]) => send({ action: "request_changes", design }, files);

  const asksStore =
    question.reason === "question" && contract.nodes.some((one) => !one.existing && STORE_NODE.test(one.node_name));
  const stores = useStores(session.instance, asksStore);
  const [store, setStore] = useDraft(`store:${question.id}`, "");

  // What a button does follows from what the person has typed.
  const renamed: Partial<Record<Action, string>> = {
    ...(edits && { approve: t("Approve with my edits") }),
    ...(completes && feedback.text.trim() && { request_changes: t("Say it anew") }),
  };

  function choose(action: Action) {
    if (action === "request_changes" && completes && !feedback.text.trim()) element.current?.requestSubmit();
    else if (action === "request_changes") {
      // A store is an answer by itself; words may go with it.
      const text = store && !tooLong(feedback.text) ? [store, feedback.text.trim()].join("\n") : feedback.required();
      if (text) send({ action, feedback: text });
    } else if (action === "cancel") send({ action });
    else if (action === "approve" && feedback.empty(t("Approve"))) {
      const asked = questions.map((one) => one.trim()).filter(Boolean);
      if (asked.some((one) => tooLong(one, MOST_CHARACTERS))) return;
      const changed = asked.length > 0 && asked.join("\n") !== contract.test_questions.join("\n");
      send(
        {
          action,
          ...(approach ? { approach } : {}),
          ...(changed ? { test_questions: asked } : {}),
          ...(real.length > 0 ? { real } : {}),
          ...(edits ? { edits: sentEdits(edits) } : {}),
        },
        ...(edits ? [filesOf(edits)] : []),
      );
    }
  }

  return (
    <div className="stack">
      {approvable && (
        <PlanSections
          data={question.data}
          sessionId={session.thread_id}
          questionId={question.id}
          requirement={session.requirement}
          instance={session.instance}
        />
      )}
      {completes && session.degraded.length === 0 && (
        <p>
          <Link href="/instances">{t("Connect a model")}</Link>
        </p>
      )}
      {completes && form && (
        <StarterForm
          ref={element}
          form={form}
          needs={starter?.needs ?? []}
          questionId={question.id}
          instance={session.instance}
          requirement={session.requirement}
          onSend={sendForm}
        />
      )}
      {approvable && form && (
        <details onToggle={(event) => setChanging(event.currentTarget.open)}>
          <summary>{t("Change the form")}</summary>
          {isChanging && (
            <StarterForm form={form} needs={[]} questionId={question.id} instance={session.instance} onSend={sendForm}>
              <div>
                <button type="submit" className="button" disabled={busy}>
                  {t("Plan it like this")}
                </button>
              </div>
            </StarterForm>
          )}
        </details>
      )}
      {stores.length > 0 && (
        <fieldset className="cards">
          <legend className="visually-hidden">{t("Document stores")}</legend>
          {stores.map((one) => (
            <label key={one.value} className="pick">
              <input type="radio" name="store" checked={store === one.value} onChange={() => setStore(one.value)} />
              <span className="words">{one.label}</span>
            </label>
          ))}
        </fieldset>
      )}
      {approaches.length > 0 && (
        <fieldset className="cards">
          <legend>{t("Approach")}</legend>
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
            {t(
              "Flowise does not have exactly one credential of type {{type}}. You choose or create it in the next step, or add it now.",
              { type: missing.join(", ") },
            )}
          </p>
          {missing.map((type) => (
            <AddCredential key={type} type={type} instance={session.instance} />
          ))}
        </div>
      )}
      {approvable && <TestQuestions questions={questions} onChange={setQuestions} />}
      {approvable && addresses.length > 0 && (
        <fieldset>
          <legend>{t("Really call in the tests")}</legend>
          <small>{t("Nothing else is called then; the rest is simulated.")}</small>
          {addresses.map((one) => (
            <label key={one} className="pick">
              <input
                type="checkbox"
                checked={real.includes(one)}
                onChange={() => setReal(real.includes(one) ? real.filter((other) => other !== one) : [...real, one])}
              />
              <span className="words">{one}</span>
            </label>
          ))}
        </fieldset>
      )}
      <Choices
        options={question.options.map((one) => ({
          ...one,
          ...(renamed[one.value] && { label: renamed[one.value], texts: {} }),
        }))}
        busy={busy}
        onChoose={choose}
        composer={{
          feedback,
          label: (!approvable && WORDED_AS[question.reason]?.()) || t("What should be different?"),
          sends: "request_changes",
        }}
      >
        {question.reason === "declined" && target && (
          <section className="row" aria-label={t("Without a model")}>
            {session.chatflow_url && (
              <a className="button" href={session.chatflow_url} target="_blank" rel="noopener noreferrer">
                {t("Edit by hand in Flowise")}
              </a>
            )}
            <PlainOperation operation="copy" flow={target} instance={session.instance} />
            <PlainOperation operation="update" flow={target} instance={session.instance} />
            <Link href={`/f/${target.id}/${session.instance}`} className="button">
              {t("Change it by hand")}
            </Link>
          </section>
        )}
        {question.reason === "declined" && contract.operation === "create" && (
          <p>
            <Link href="/new" className="button">
              {t("Build by hand")}
            </Link>
          </p>
        )}
        {approvable && <EditBar />}
      </Choices>
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
      <legend>{t("Test questions")}</legend>
      <small>{t("The flow is tested with these questions. You can change them.")}</small>
      <ul className="plain stack tight">
        {questions.map((text, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a question is identified by its position
          <li key={index} className="row">
            <TextInput
              className="grow"
              aria-label={t("Test question {{number}}", { number: index + 1 })}
              most={MOST_CHARACTERS}
              value={text}
              onChange={(event) => onChange(questions.with(index, event.target.value))}
            />
            <button
              type="button"
              className="button plain"
              aria-label={t("Remove test question {{number}}", { number: index + 1 })}
              onClick={() => onChange(questions.filter((_, other) => other !== index))}
            >
              {t("Remove")}
            </button>
          </li>
        ))}
      </ul>
      {questions.length < MAX_QUESTIONS && (
        <div>
          <button type="button" className="button plain" onClick={() => onChange([...questions, ""])}>
            {t("Add a question")}
          </button>
        </div>
      )}
    </fieldset>
  );
}
