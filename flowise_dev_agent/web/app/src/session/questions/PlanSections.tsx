/** What the plan says, without what has a control of its own. Each line points at its nodes in the picture. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useContext, useState } from "react";
import { nodeType, sessionPreview } from "../../api/queries";
import type { InterruptOf, Plan, PreviewNode } from "../../api/types";
import { EditingContext, editOf } from "../../flow/edits";
import { usePointer } from "../../flow/highlight";
import { paramLabel } from "../../flow/layout";
import { MarkBadge } from "../../flow/MarkBadge";
import type { Mark } from "../../flow/merge";
import { ParamFiles } from "../../flow/ParamFiles";
import { readable } from "../../flow/readable";
import { t } from "../../i18n";
import { worded } from "../../i18n/texts";
import { fieldsOf, type Schema } from "../../ui/form/schema";
import { plural } from "../../ui/format";
import { TextDiff } from "../../ui/TextDiff";
import { Findings } from "./controls";

type PlanData = InterruptOf<"plan_approval">["data"];
type Part = Plan["parts"][number];
type Value = NonNullable<PlanData["details"]>["values"][number];
type Way = NonNullable<PlanData["details"]>["outline"][number]["leads_to"][number];

const STATES: Record<Part["state"], [sign: string, word: string]> = {
  covered: ["✓", "Will be done"],
  assumed: ["≈", "Assumed"],
  asked: ["?", "Asked"],
  background: ["·", "Nothing to do"],
  not_possible: ["✗", "Not possible"],
  not_understood: ["✗", "Not understood"],
};
/** Of a prompt, where the words of the person stand as they are: nothing but the model carries them out. */
const PROSE = /(prompt|(?<!reply|error|fallback)messages?|\]\.content|instructions|template|prefix)$/i;
const SAID: [sign: string, word: string] = ["“", "Said to the model"];
/** Longer values get a block of their own. */
const SHORT = 60;
/** What is shown of a text before it is unfolded. */
const MOST_LINES = 3;
const MOST_CHARS = 300;

interface Props {
  data: PlanData;
  sessionId: string;
  questionId: string;
  /** In the person's own words; a goal that only repeats it is not shown. */
  requirement: string;
  /** The Flowise server. */
  instance: string;
}

export function PlanSections({ data, sessionId, questionId, requirement, instance }: Props) {
  const { contract, details } = data;
  const { data: preview } = useQuery(sessionPreview(sessionId, questionId));
  const drawn = new Map(preview?.nodes.map((one) => [one.node.id, one]));
  // The preview adds to a part the nodes whose values it names.
  const parts = preview?.parts ?? contract.parts ?? data.not_done;
  // Those of a form are its own fields, which the person knows.
  const told = data.form ? parts.filter((one) => one.state !== "covered") : parts;
  const more: [string, ReactNode[]][] = [
    [t("What an approval allows"), (details?.allows ?? []).map((text) => text.replaceAll("`", ""))],
    [t("Kept as it is"), details ? details.kept.map((one) => one.label || one.node_id) : contract.kept],
    [t("Steps"), contract.steps.map((text) => text.replaceAll("`", ""))],
    [t("Credentials"), contract.credential_requirements],
    [t("Personal data"), contract.pii_fields],
  ];
  return (
    <>
      {contract.goal.trim() !== requirement.trim() && <p>{contract.goal}</p>}
      <Listed title={t("You must do")} items={details?.to_do ?? []} />
      <Findings findings={contract.findings} />
      {told.length > 0 && <Parts parts={told} drawn={drawn} values={details?.values ?? []} />}
      <Changes data={data} drawn={drawn} />
      <Listed
        title={t("Placeholders to fill in")}
        items={contract.placeholders.map((text) => (
          <Placeholder key={text} text={text} data={data} drawn={drawn} instance={instance} />
        ))}
      />
      <Listed title={t("Success criteria")} items={contract.success_criteria} />
      {more.some(([, items]) => items.length > 0) && (
        <details>
          <summary>{t("More about the plan")}</summary>
          <div className="stack more">
            {more.map(([title, items]) => (
              <Listed key={title} title={title} items={items} />
            ))}
          </div>
        </details>
      )}
    </>
  );
}

interface PlaceholderProps {
  text: string;
  data: PlanData;
  drawn: Map<string, PreviewNode>;
  instance: string;
}

/** What stands in for something that the person gives: by a file here, or by typing at its node in the picture. */
function Placeholder({ text, data, drawn, instance }: PlaceholderProps) {
  const editing = useContext(EditingContext);
  const pointer = usePointer();
  const place = data.details?.values.find((one) => [`${one.node_id}.${one.param}: ${one.new}`, one.new].includes(text));
  const node = place && drawn.get(place.node_id)?.node;
  const type = useQuery({ ...nodeType(node?.name ?? "", instance), enabled: Boolean(node && editing) });
  if (!node || !editing || !type.data) return text;
  const field = fieldsOf(type.data.form as Schema).find((one) => one.name === place.param);
  const edit = editOf(editing.edits, place.node_id, place.param);
  return (
    <ParamFiles
      keeps={field?.schema.format === "file"}
      kinds={field?.schema["x-file-types"]}
      files={edit?.files ?? []}
      onSet={(value, files) => editing.set(place.node_id, place.param, value, files)}
    >
      <p>
        <button type="button" className="points" {...pointer([node.id])}>
          {node.label}: {field?.label ?? place.param}
        </button>{" "}
        {edit ? <span className="badge ok">{t("filled in")}</span> : <small>{String(place.new)}</small>}
      </p>
    </ParamFiles>
  );
}

function Listed({ title, items }: { title: string; items: ReactNode[] }) {
  if (items.length === 0) return null;
  return (
    <section>
      <h3 className="section-title">{title}</h3>
      <ul className="bullets">
        {items.map((item, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a fixed list
          <li key={index}>{item}</li>
        ))}
      </ul>
    </section>
  );
}

/** The request in parts, with what becomes of each. */
function Parts({ parts, drawn, values }: { parts: Part[]; drawn: Map<string, PreviewNode>; values: Value[] }) {
  const pointer = usePointer();
  const places = new Map(values.map((one) => [`${one.node_id}.${one.param}`, one]));
  return (
    <section>
      <h3 className="section-title" id="parts-title">
        {t("Your request, part by part")}
      </h3>
      <ul className="plain states" aria-labelledby="parts-title">
        {parts.map((part) => {
          const said = part.values.length > 0 && part.values.every((one) => PROSE.test(one));
          const [sign, word] = part.state === "covered" && said ? SAID : STATES[part.state];
          const nodes = part.nodes.flatMap((id) => drawn.get(id)?.node ?? []);
          // Whoever reads what is set for a part sees what of it is missing.
          const set = part.state === "covered" ? part.values.flatMap((place) => places.get(place) ?? []) : [];
          return (
            <li key={part.id} className={`state-line ${part.state}`}>
              <span className="state">
                <span aria-hidden="true">{sign}</span> {t(word)}
              </span>
              <span className="words">
                <span className="clip-3">{t("“{{words}}”", { words: part.quote })}</span>
                {part.reason && <small className="reason">{worded(part, "reason")}</small>}
                {nodes.length > 0 && (
                  <button type="button" className="points" {...pointer(part.nodes)}>
                    {nodes.map((node) => node.label).join(", ")}
                  </button>
                )}
                {set.map(
                  ({ node_id, node, param, new: value }) =>
                    !PROSE.test(param) && (
                      <code key={`${node_id}.${param}`} className="clip-3">
                        {node} · {paramLabel(param)}:{" "}
                        {readable(typeof value === "string" ? value : JSON.stringify(value))}
                      </code>
                    ),
                )}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const MARKS: Record<PreviewNode["state"], Mark> = {
  existing: "same",
  new: "added",
  changed: "changed",
  removed: "removed",
};

interface Change {
  id: string;
  label: string;
  mark: Mark;
  purpose: string;
  values: Value[];
  /** Its branches, and where they lead. */
  ways: Way[];
}

/** What is added, changed and removed, node by node. */
function Changes({ data, drawn }: { data: PlanData; drawn: Map<string, PreviewNode> }) {
  const pointer = usePointer();
  const changes = changesOf(data, drawn);
  if (changes.length === 0) return null;
  // Of a new flow everything is new.
  const isMarked = changes.some((one) => one.mark !== "added");
  return (
    <section>
      <h3 className="section-title" id="changes-title">
        {t("What is built")}
      </h3>
      <ul className="plain built" aria-labelledby="changes-title">
        {changes.map((one) => (
          <li key={one.id}>
            <div className="row">
              <button type="button" className="points strong" {...pointer([one.id])}>
                {one.label}
              </button>
              {isMarked && <MarkBadge mark={one.mark} />}
              {one.purpose && <small>{one.purpose}</small>}
            </div>
            {one.ways.map(({ name, to, known }) => (
              <small key={`${name} ${to}`} className="value-line">
                {name}
                {known && <> → {to || t("the flow ends here")}</>}
              </small>
            ))}
            {one.values.map((value) => (
              <ValueLine key={value.param} value={value} />
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

function changesOf(data: PlanData, drawn: Map<string, PreviewNode>): Change[] {
  const { contract, details } = data;
  const values = Map.groupBy(details?.values ?? [], (one) => one.node_id);
  const removed = details?.removed ?? contract.removals.map((id) => ({ node_id: id, node_name: id, label: "" }));
  const found = new Map<string, Change>();
  // Until the picture of it is here.
  const there: Mark = contract.operation === "create" ? "added" : "changed";
  const ways = new Map(
    (details?.outline ?? []).map((line) => [line.node_id, line.leads_to.filter((way) => way.name)] as const),
  );
  for (const node of contract.nodes) {
    const shown = drawn.get(node.node_id);
    const mark = shown ? MARKS[shown.state] : node.existing ? there : "added";
    if (mark === "same" && !values.has(node.node_id)) continue;
    const named = node.label || values.get(node.node_id)?.[0]?.node || paramLabel(node.node_name);
    const label = shown?.node.label || named;
    found.set(node.node_id, {
      ...{ id: node.node_id, label, mark, purpose: node.purpose, values: [] },
      ways: ways.get(node.node_id) ?? [],
    });
  }
  for (const [id, list] of values) {
    const known = found.get(id);
    const label = drawn.get(id)?.node.label || list[0]?.node || id;
    found.set(id, {
      ...(known ?? { id, label, mark: there, purpose: "", ways: ways.get(id) ?? [] }),
      values: list,
    });
  }
  for (const { node_id: id, label, node_name } of removed)
    found.set(id, { id, label: label || node_name, mark: "removed", purpose: "", values: [], ways: [] });
  return [...found.values()];
}

/** A value that the plan sets, beside the one that it replaces. */
function ValueLine({ value }: { value: Value }) {
  const text = (one: unknown) => readable(typeof one === "string" ? one : JSON.stringify(one));
  const [before, after] = [value.old === null ? "" : text(value.old), text(value.new)];
  const label = paramLabel(value.param);
  return (
    <div className="value-line">
      {before.length + after.length <= SHORT ? (
        <span>
          <small>{label}</small> {before && <del>{before}</del>} <ins>{after}</ins>
        </span>
      ) : (
        <>
          <small>{label}</small>
          {before ? <TextDiff before={before} after={after} /> : <Text text={after} />}
        </>
      )}
      {value.loses_text && <p className="note warn">{t("The text that is there now goes.")}</p>}
    </div>
  );
}

/** A long text is folded to its beginning. */
function Text({ text }: { text: string }) {
  const [whole, show] = useState(false);
  const begun = beginning(text);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long value must scroll by keyboard too */}
      <p className="plan-text" tabIndex={0}>
        {whole ? text : begun}
      </p>
      {begun !== text && (
        <button type="button" className="button plain small" aria-expanded={whole} onClick={() => show(!whole)}>
          {whole ? t("Show less") : t("Show all: {{length}}", { length: plural(text.length, "character") })}
        </button>
      )}
    </>
  );
}

/** The first lines of a longer text. */
function beginning(text: string): string {
  const lines = text.split("\n");
  const begun = lines.slice(0, MOST_LINES).join("\n");
  if (begun.length > MOST_CHARS) return `${begun.slice(0, MOST_CHARS)} …`;
  return lines.length > MOST_LINES ? `${begun}\n…` : text;
}
