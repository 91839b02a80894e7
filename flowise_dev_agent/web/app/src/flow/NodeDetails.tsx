import { useContext } from "react";
import type { CanvasNode, FieldChange } from "../api/types";
import { t } from "../i18n";
import { ExpertSwitch } from "../ui/ExpertSwitch";
import { duration } from "../ui/format";
import { TextDiff } from "../ui/TextDiff";
import { BuildSection } from "./BuildSection";
import { BuildingContext } from "./building";
import { EditingContext } from "./edits";
import { HighlightContext, outputText } from "./highlight";
import { paramLabel, rootOf } from "./layout";
import { MarkBadge } from "./MarkBadge";
import type { MarkedNode } from "./merge";
import { NodeForm } from "./NodeForm";
import { readable, settingsIn } from "./readable";

/** All settings of a node; changed fields first, before and after. While a plan or a result is open, as a form. */
interface Props {
  marked: MarkedNode;
  instance?: string;
  onClose: () => void;
}

export function NodeDetails({ marked, instance, onClose }: Props) {
  const editing = useContext(EditingContext);
  const building = useContext(BuildingContext);
  const { node, mark, fields } = marked;
  const ran = useContext(HighlightContext).run?.filter((step) => step.node_id === node.id) ?? [];
  const form = editing && instance && node.kind !== "note" && <NodeForm node={node} instance={instance} />;
  const changed = new Set(fields.flatMap(({ name }) => [name, rootOf(name)]));
  const rest = settingsOf(node.params).filter((param) => !changed.has(param.name));
  return (
    <section className="card stack tight node-details" aria-label={t("Details of {{node}}", { node: node.label })}>
      <header>
        <h2 className="small-title">{node.label}</h2>
        <MarkBadge mark={mark} />
        <button type="button" className="button plain" onClick={onClose} aria-label={t("Close the details")}>
          ✕
        </button>
      </header>
      <p className="for-experts">
        <small>
          {[node.name, node.category, node.version && t("version {{version}}", { version: node.version })]
            .filter(Boolean)
            .join(" · ")}
        </small>
      </p>
      <p className={node.credential ? "" : "for-experts"}>
        <small>
          <code className="for-experts">{node.id}</code>{" "}
          {node.credential && t(node.credential === "bound" ? "credential bound" : "credential missing")}
        </small>
      </p>
      {ran.map((step, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a loop runs the same step again
        <section key={index} className="stack tight" aria-label={t("What it did")}>
          <h3>
            {t("What it did")} {step.duration_ms !== null && <small>{duration(step.duration_ms)}</small>}
          </h3>
          {step.input !== null && <OutputOf name={t("Given")} value={step.input} />}
          {step.error ? <p className="problem">{step.error}</p> : <OutputOf name={t("Result")} value={step.output} />}
        </section>
      ))}
      {fields.length > 0 && (
        <>
          <h3>{t("Changes")}</h3>
          {fields.map((field) => (
            <OldNew key={field.name} field={field} marked={marked} />
          ))}
        </>
      )}
      {building && node.kind === "note" ? <NoteForm node={node} /> : node.note && <p>{node.note}</p>}
      {building && node.kind !== "note" && mark !== "removed" ? (
        <BuildSection node={node} building={building}>
          {form}
        </BuildSection>
      ) : (
        form
      )}
      {!editing && rest.length > 0 && (
        <>
          <h3>{fields.length > 0 ? t("Unchanged settings") : t("Settings")}</h3>
          <dl className="stack tight">
            {rest.map((param) => (
              <div key={param.name}>
                <dt>
                  <small>{t(param.label)}</small>
                </dt>
                <dd>
                  <Value text={param.value} />
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
      {!editing && node.params.length === 0 && fields.length === 0 && !node.note && (
        <p className="quiet">{t("All settings have their default.")}</p>
      )}
      <ExpertSwitch />
    </section>
  );
}

function NoteForm({ node }: { node: CanvasNode }) {
  const editing = useContext(EditingContext);
  return (
    <>
      <label className="field">
        {t("Note")}
        <textarea
          key={node.id}
          rows={6}
          defaultValue={node.note}
          maxLength={4000}
          onBlur={({ target }) => target.value !== node.note && editing?.set(node.id, "note", target.value)}
        />
      </label>
      <div>
        <button type="button" className="button plain" onClick={() => editing?.toggleRemoval(node.id)}>
          {t("Remove this node")}
        </button>
      </div>
    </>
  );
}

function OutputOf({ name, value }: { name: string; value: unknown }) {
  const text = outputText(value);
  if (!text) return null;
  return (
    <div>
      <small>{name}</small>
      <Value text={text} />
    </div>
  );
}

/** Both values of a field: in full from the canvas, else shortened from the comparison. */
function OldNew({ field, marked }: { field: FieldChange; marked: MarkedNode }) {
  const found = (side: MarkedNode["before"]) => side && settingsOf(side.params).find(({ name }) => name === field.name);
  const full = (side: MarkedNode["before"]) => found(side)?.value;
  const label = t((found(marked.node) ?? found(marked.before))?.label ?? paramLabel(field.name));
  return (
    <div className="old-new">
      <strong>{label}</strong>
      <TextDiff
        before={readable(full(marked.before) ?? field.before)}
        after={readable(full(marked.node) ?? field.after) || t("(none)")}
      />
    </div>
  );
}

function Value({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long value must scroll by keyboard too
    <pre tabIndex={0}>{readable(text) || t("(none)")}</pre>
  );
}

/** The settings of a component inside the node, such as an agent's model, as fields of their own. */
function settingsOf(params: CanvasNode["params"]): CanvasNode["params"] {
  return params.flatMap((param) => {
    const owner = param.name.replace(/Config$/, "");
    const settings = owner === param.name ? null : settingsIn(param.value);
    return settings
      ? settings.filter(([name]) => name !== owner).map(([name, value]) => named(param.name, name, value))
      : [param];
  });
}

const named = (owner: string, name: string, value: string): CanvasNode["params"][number] => ({
  cut: false,
  name: `${owner}.${name}`,
  label: name === "FLOWISE_CREDENTIAL_ID" ? "Credential" : paramLabel(name),
  value,
});
