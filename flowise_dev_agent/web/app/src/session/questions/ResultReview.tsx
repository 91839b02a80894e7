import { useContext, useId, useState } from "react";
import type { Action, InterruptOf } from "../../api/types";
import { inWords } from "../../flow/difference";
import { EditingContext, filesOf, opsOf } from "../../flow/edits";
import { t } from "../../i18n";
import { worded, wordedList } from "../../i18n/texts";
import { AddCredential } from "../../ui/AddCredential";
import { plural } from "../../ui/format";
import { EditBar } from "../EditBar";
import { TestList } from "../TestList";
import { HEADLINES, VerdictView } from "../VerdictView";
import { Choices, Findings, type FormProps, useFeedback } from "./controls";

/** What accepting does where it puts a flow in use. */
const LIVE = new Set([
  "option.accept_new.description",
  "option.accept_draft.description",
  "option.accept_draft_untested.description",
]);

type Iterations = InterruptOf<"result_review">["data"]["iterations"];

/** The tested flow: test answers, open points, and the decision. */
export function ResultReviewForm({ question, session, busy, send }: FormProps<InterruptOf<"result_review">>) {
  const { chatflow, draft, baseline, regressions, warnings, change } = question.data;
  // What the person says of an answer comes after the question.
  const marked = session.result?.tests.length === question.data.tests.length ? session.result : null;
  const { tests, verdict } = marked ?? question.data;
  const left = wordedList(question.data, "to_do");
  const { iterations } = question.data;
  const newest = iterations.at(-1)?.iteration;
  const feedback = useFeedback(question.id);
  const [deploy, setDeploy] = useState(true);
  const [chosen, setChosen] = useState(newest);
  const editing = useContext(EditingContext);
  const edits = editing && editing.edits.length > 0 ? editing.edits : null;
  const updates = session.operation_mode === "update";
  const worse = [...new Set(regressions.filter((one) => one.worse).map((one) => one.question))];

  const options = question.options.map((one) => {
    if (one.value !== "accept") return one;
    if (edits) return { ...one, texts: {}, label: t("Write and test my changes"), description: "" };
    const { description } = one.texts ?? {};
    if (!updates && !deploy)
      return {
        ...one,
        texts: { ...(one.texts?.label && { label: one.texts.label }) },
        description: t("Keep the chatflow without deploying it."),
      };
    if (!LIVE.has(description?.code ?? "")) return one;
    return { ...one, label: t("Go live"), texts: { ...(description && { description }) } };
  });
  const accepts = options.find((one) => one.value === "accept");

  function choose(action: Action) {
    if (action === "iterate") {
      const text = feedback.required();
      if (text) send({ action, feedback: text });
    } else if (action === "accept") {
      if (edits) return send({ action: "iterate", ops: opsOf(edits) }, filesOf(edits));
      const earlier = chosen === newest ? {} : { iteration: chosen };
      if (feedback.empty(accepts ? worded(accepts, "label") : "")) send({ action, deploy, ...earlier });
    } else if (action === "rollback" && feedback.empty(t("Roll back"))) send({ action });
  }

  return (
    <div className="stack">
      {draft && (
        <p className="quiet">
          {t("The change is in a draft.")} <a href={chatflow.url}>{chatflow.name}</a>{" "}
          {t("stays unchanged until you accept.")}
        </p>
      )}
      {verdict && <VerdictView verdict={verdict} />}
      <TestList tests={tests} baseline={baseline} verdict={verdict} session={session.thread_id} />
      {change?.summary && (
        <p>
          <strong>{t("What changed:")}</strong> {inWords(change)}. {t("The picture shows it.")}
        </p>
      )}
      {change?.texts?.text && (
        <p>
          <strong>{t("What changed:")}</strong> {worded(change, "text")}
        </p>
      )}
      {tests.some((one) => !one.passed && one.category === "CREDENTIAL") && (
        <div className="note warn">
          <p>{t("A credential is missing or was rejected. Add one, then say below which one to use.")}</p>
          <AddCredential instance={session.instance} />
        </div>
      )}
      {verdict?.reason && <p className="quiet">{worded(verdict, "reason")}</p>}
      {worse.length > 0 && (
        <div className="note warn">
          <p>
            {plural(worse.length, "question")} {t("had a better answer before the change:")}
          </p>
          <ul>
            {worse.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </div>
      )}
      {left.length > 0 && (
        <div className="note warn">
          <p>{t("You must do:")}</p>
          <ul>
            {left.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </div>
      )}
      <Findings findings={warnings} />
      {wordedList(question.data, "notes").map((text) => (
        <p key={text} className="quiet">
          {text}
        </p>
      ))}
      <p>
        <a href={draft?.url ?? chatflow.url} target="_blank" rel="noopener noreferrer">
          {draft ? t("Open the draft in Flowise") : t("Open the flow in Flowise")}
        </a>
      </p>
      {iterations.length > 1 && <Iteration iterations={iterations} chosen={chosen} choose={setChosen} />}
      <Choices
        options={options}
        busy={busy}
        onChoose={choose}
        // After a failure it is not what the page suggests.
        doubted={
          !edits && (verdict?.headline === "fails" || (verdict && !verdict.done && verdict.headline !== "not_tested"))
            ? "accept"
            : null
        }
        composer={{ feedback, label: t("What should be different?"), sends: "iterate" }}
      >
        <EditBar />
        {!updates && !edits && (
          <label className="check">
            <input type="checkbox" checked={deploy} onChange={(event) => setDeploy(event.target.checked)} />
            {t("Put it live when I accept")}
          </label>
        )}
      </Choices>
    </div>
  );
}

/** Which of the tested iterations is accepted; the newest one unless the person says otherwise. */
function Iteration(props: { iterations: Iterations; chosen: number | undefined; choose: (iteration: number) => void }) {
  const id = useId();
  const newest = props.iterations.at(-1)?.iteration;
  return (
    <div className="field">
      <label htmlFor={id}>{t("Iteration to accept")}</label>
      <select id={id} value={props.chosen} onChange={(event) => props.choose(Number(event.target.value))}>
        {props.iterations.map((one) => (
          <option key={one.iteration} value={one.iteration}>
            {one.iteration}
            {one.iteration === newest ? ` (${t("newest")})` : ""}: {t(HEADLINES[one.headline])} {t("Criteria shown:")}{" "}
            {one.shown.length}.
          </option>
        ))}
      </select>
    </div>
  );
}
