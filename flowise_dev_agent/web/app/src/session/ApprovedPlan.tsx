import type { PlanView } from "../api/types";
import { Markdown } from "../ui/Markdown";

/** What the person agreed to. */
export function ApprovedPlan({ plan }: { plan: PlanView }) {
  return (
    <div className="stack">
      {plan.approach && (
        <p>
          Approach: <strong>{plan.approach}</strong>
        </p>
      )}
      <Markdown text={plan.text || "The plan was too long to be kept."} level={2} />
    </div>
  );
}
