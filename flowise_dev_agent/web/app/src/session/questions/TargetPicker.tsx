import { useState } from "react";
import type { Action, InterruptOf } from "../../api/types";
import { LiveThumbnail } from "../../flow/FlowThumbnail";
import { t } from "../../i18n";
import { FlowPicker } from "../../sessions/FlowPicker";
import { ago, plural } from "../../ui/format";
import { Choices, type FormProps } from "./controls";

/** Choose the flow to change. */
export function TargetPicker({ question, session, busy, send }: FormProps<InterruptOf<"select_target">>) {
  const { candidates } = question.data;
  const [chosen, setChosen] = useState(candidates.length === 1 ? (candidates[0]?.id ?? "") : "");
  const [other, setOther] = useState<{ id: string; name: string } | null>(null);
  const [problem, setProblem] = useState("");

  function choose(action: Action) {
    const id = other?.id ?? chosen;
    if (action === "select" && !id) setProblem(t("Choose one of the flows."));
    else if (action === "select") send({ action, chatflow_id: id });
    else if (action === "create_new" || action === "cancel") send({ action });
  }

  return (
    <div className="stack">
      {candidates.length > 0 && (
        <fieldset className="cards">
          <legend className="visually-hidden">{t("Flows")}</legend>
          {candidates.map((flow) => (
            <label key={flow.id} className="pick">
              <input
                type="radio"
                name="target"
                value={flow.id}
                checked={!other && chosen === flow.id}
                onChange={() => {
                  setProblem("");
                  setOther(null);
                  setChosen(flow.id);
                }}
              />
              <span className="stack tight grow">
                <LiveThumbnail id={flow.id} instance={session.instance} />
                <span className="row">
                  <strong>{flow.name}</strong>
                  {flow.deployed && <span className="badge ok">{t("Deployed")}</span>}
                </span>
                <small>
                  {plural(flow.nodes, "node")}, {t("changed {{when}}", { when: ago(flow.updated) })}
                </small>
                {flow.about && <small>“{flow.about}”</small>}
                <small>{flow.node_types.join(", ")}</small>
              </span>
            </label>
          ))}
          {/* The candidates are some of the flows; any other can be meant. */}
          <FlowPicker instance={session.instance} chosen={other} onChoose={setOther} label={t("Another flow")} />
        </fieldset>
      )}
      <Choices options={question.options} busy={busy} onChoose={choose}>
        <p role="alert" className="problem">
          {problem}
        </p>
      </Choices>
    </div>
  );
}
