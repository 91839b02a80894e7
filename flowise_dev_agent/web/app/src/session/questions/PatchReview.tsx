import { useState } from "react";
import { SessionDiff } from "../../flow/SessionDiff";
import { count, dollars } from "../../ui/format";
import { Choices } from "./Choices";
import { Findings } from "./Findings";
import { RemarkField, useRemark } from "./Remark";
import type { FormProps, PatchReview } from "./shapes";

/** Why the change stopped before it was written, and what it is. */
export function PatchReviewForm({ question, session, busy, send }: FormProps<PatchReview>) {
  const { change, meanwhile, findings } = question.data;
  const remark = useRemark();
  const offers = (action: string) => question.options.some((one) => one.value === action);

  function choose(action: string) {
    const feedback = remark.text.trim();
    if (action === "replan") send(feedback ? { action, feedback } : { action });
    else if (action === "cancel" || remark.unused(labelOf(question.options, action))) send({ action });
  }

  return (
    <div className="stack">
      <Findings findings={findings} />
      {(change.text || meanwhile) && <SessionDiff sessionId={session.thread_id} revision={question.id} />}
      {offers("raise_budget") && <RaiseBudget {...{ question, session, busy, send }} />}
      {offers("replan") && <RemarkField remark={remark} label="Remarks for a new plan (if you have any)" />}
      <Choices options={question.options} busy={busy} onChoose={choose} without={["raise_budget"]} />
    </div>
  );
}

function RaiseBudget({ question, session, busy, send }: FormProps<PatchReview>) {
  const { totals } = session;
  const used = totals.input_tokens + totals.output_tokens;
  const { tokens: tokenCeiling, usd: usdCeiling } = question.data.budget;
  const [tokens, setTokens] = useState("");
  const [usd, setUsd] = useState("");
  const given = {
    ...(Number(tokens) > 0 ? { tokens: Number(tokens) } : {}),
    ...(Number(usd) > 0 ? { usd: Number(usd) } : {}),
  };
  return (
    <fieldset className="card stack" disabled={busy}>
      <legend className="visually-hidden">Budget</legend>
      <p>
        Used so far: {count(used)} tokens and {dollars(totals.usd)}.
      </p>
      <div className="row">
        <label className="field">
          New ceiling in tokens
          <input
            type="number"
            min={1}
            value={tokens}
            placeholder={tokenCeiling?.toString()}
            onChange={(event) => setTokens(event.target.value)}
          />
        </label>
        <label className="field">
          New ceiling in dollars
          <input
            type="number"
            min={0}
            step="any"
            value={usd}
            placeholder={usdCeiling?.toString()}
            onChange={(event) => setUsd(event.target.value)}
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
          Raise the budget and go on
        </button>
      </div>
    </fieldset>
  );
}

const labelOf = (options: { value: string; label: string }[], action: string): string =>
  options.find((one) => one.value === action)?.label ?? action;
