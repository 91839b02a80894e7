import type { Action, InterruptOf, Option } from "../../api/types";
import { t } from "../../i18n";
import { count, dollars } from "../../ui/format";
import { tooLong } from "../../ui/tooLong";
import { useDraft } from "../../ui/useDraft";
import { Choices, Findings, type FormProps, useFeedback } from "./controls";

type Props = FormProps<InterruptOf<"patch_review">>;

/** The change that stopped before the write, and the reason. */
export function PatchReviewForm({ question, session, busy, send }: Props) {
  const { findings } = question.data;
  const feedback = useFeedback(question.id);
  const offers = (action: Action) => question.options.some((one) => one.value === action);

  function choose(action: Action) {
    const text = feedback.text.trim();
    if (action === "replan" && tooLong(feedback.text)) return;
    if (action === "replan") send(text ? { action, feedback: text } : { action });
    else if (action === "cancel") send({ action });
    else if (action === "continue" || action === "rebase" || action === "overwrite") {
      if (feedback.empty(labelOf(question.options, action))) send({ action });
    }
  }

  return (
    <div className="stack">
      <Findings findings={findings} />
      {offers("raise_budget") && <RaiseBudget {...{ question, session, busy, send }} />}
      <Choices
        options={question.options}
        busy={busy}
        onChoose={choose}
        without={["raise_budget"]}
        {...(offers("replan") && {
          composer: { feedback, label: t("Feedback for a new plan (optional)"), sends: "replan" },
        })}
      />
    </div>
  );
}

function RaiseBudget({ question, session, busy, send }: Props) {
  const { totals } = session;
  const used = totals.input_tokens + totals.output_tokens;
  const { tokens: tokenLimit, usd: usdLimit } = question.data.budget;
  const [{ tokens, usd }, keep] = useDraft(`budget:${question.id}`, { tokens: "", usd: "" });
  const given = {
    ...(Number(tokens) > 0 ? { tokens: Number(tokens) } : {}),
    ...(Number(usd) > 0 ? { usd: Number(usd) } : {}),
  };
  return (
    <fieldset className="card stack" disabled={busy}>
      <legend className="visually-hidden">{t("Budget")}</legend>
      <p>{t("Used so far: {{tokens}} tokens and {{usd}}.", { tokens: count(used), usd: dollars(totals.usd) })}</p>
      <div className="row">
        <label className="field">
          {t("New token limit")}
          <input
            type="number"
            min={1}
            value={tokens}
            placeholder={tokenLimit?.toString()}
            onChange={(event) => keep({ tokens: event.target.value, usd })}
          />
        </label>
        <label className="field">
          {t("New limit in USD")}
          <input
            type="number"
            min={0}
            step="any"
            value={usd}
            placeholder={usdLimit?.toString()}
            onChange={(event) => keep({ tokens, usd: event.target.value })}
          />
        </label>
      </div>
      <div>
        <button
          type="button"
          className="button primary"
          disabled={Object.keys(given).length === 0}
          onClick={() => send({ action: "raise_budget", budget: given })}
        >
          {t("Raise the budget and continue")}
        </button>
      </div>
    </fieldset>
  );
}

const labelOf = (options: Option[], action: Action): string =>
  options.find((one) => one.value === action)?.label ?? action;
