import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useContext, useMemo, useState } from "react";
import { sessionChange } from "../api/queries";
import type { Difference, FlowChange } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { ErrorNote } from "../ui/ErrorNote";
import { Tabs } from "../ui/Tabs";
import { TextDiff } from "../ui/TextDiff";
import { inWords } from "./difference";
import { EditingContext, edited } from "./edits";
import { FlowCanvas } from "./FlowCanvas";
import { MarkBadge } from "./MarkBadge";
import { calm, counts, type Mark, type Marked, merged, unmarked } from "./merge";
import { NodeDetails } from "./NodeDetails";
import { OpList } from "./ops";
import { readable } from "./readable";
import "./flow.css";

type Side = "before" | "change" | "after";

/** The changes of a session, and meanwhile changes by others. For `revision` see `sessionChange`. */
export function SessionDiff({
  sessionId,
  revision,
  instance,
}: {
  sessionId: string;
  revision?: unknown;
  instance?: string;
}) {
  const { data: change, error, isPending } = useQuery(sessionChange(sessionId, revision));
  if (isPending) return <p className="empty-picture">{t("Loading the change…")}</p>;
  if (error) return <ErrorNote error={error} />;
  if (!change) return <p className="empty-picture">{t("No flow yet.")}</p>;
  if (!change.meanwhile) return <FlowDiff change={change} {...(instance && { instance })} />;
  return (
    <div className="both-changes">
      <section aria-label={t("Changes by someone else")}>
        <h2 className="small-title">{t("Changes by someone else in Flowise")}</h2>
        <FlowDiff change={change.meanwhile} />
      </section>
      <section aria-label={t("Changes of this session")}>
        <h2 className="small-title">{t("Changes of this session")}</h2>
        <FlowDiff change={change} />
      </section>
    </div>
  );
}

/** The changes of a flow: on the canvas, as a list, and as ops. It fills its container. */
export function FlowDiff({ change, instance }: { change: FlowChange; instance?: string }) {
  const { ops } = change;
  const tabs = [
    { name: t("Picture"), content: <ChangeCanvas change={change} {...(instance && { instance })} /> },
    { name: t("List"), content: <ChangeList {...change} /> },
    ...(ops.length > 0
      ? [{ name: t("One by one ({{number}})", { number: ops.length }), content: <OpList ops={ops} /> }]
      : []),
  ];
  return (
    <div className="flow-diff">
      <p className="visually-hidden">{inWords(change.diff)}</p>
      <Tabs label={t("The change")} tabs={tabs} />
    </div>
  );
}

function ChangeCanvas({ change, instance }: { change: FlowChange; instance?: string }) {
  const edits = useContext(EditingContext)?.edits;
  const [side, setSide] = useState<Side>("change");
  const [chosen, setChosen] = useState<string | null>(null);
  const both = useMemo(() => calm(merged(change)), [change]);
  const shown = useMemo<Marked>(() => {
    const view = side === "change" ? null : change[side];
    const drawn = view ? unmarked(view) : both;
    return edits && side !== "before" ? edited(drawn, edits) : drawn;
  }, [side, change, both, edits]);
  const marked = shown.nodes.find(({ node }) => node.id === chosen);
  const sides: [Side, string][] = [
    ["before", sideName(t("Before"), worded(change, "before_label"))],
    ["change", t("Changes")],
    ...(change.after ? [["after", sideName(t("After"), worded(change, "after_label"))] as [Side, string]] : []),
  ];
  return (
    <div className="change-canvas">
      <FlowCanvas
        // A new key fits the canvas to the other state.
        key={side}
        flow={shown}
        label={t("The flow, {{side}}. {{summary}}", {
          side: sides.find(([value]) => value === side)?.[1] ?? side,
          summary: inWords(change.diff),
        })}
        chosen={chosen}
        onChoose={setChosen}
      >
        {change.before && change.before_label !== change.after_label && (
          <fieldset className="choices" aria-label={t("State to show")}>
            {sides.map(([value, name]) => (
              <button key={value} type="button" aria-pressed={side === value} onClick={() => setSide(value)}>
                {name}
              </button>
            ))}
          </fieldset>
        )}
        <Legend marked={both} />
      </FlowCanvas>
      {marked && (
        <NodeDetails
          key={marked.node.id}
          marked={marked}
          {...(instance && { instance })}
          onClose={() => setChosen(null)}
        />
      )}
    </div>
  );
}

/** "Before", or "Before: v1.0" when the state has a name. */
const sideName = (side: string, label: string): string =>
  label.toLowerCase() === side.toLowerCase() ? side : `${side}: ${label}`;

/** How many of each change there are. */
export function Legend({ marked }: { marked: Marked }) {
  const found = counts(marked);
  if (Object.values(found).every((number) => number === 0)) return null;
  return (
    <p className="row legend">
      {(["added", "changed", "removed", "moved"] as const)
        .filter((mark) => found[mark] > 0)
        .map((mark) => (
          <MarkBadge key={mark} mark={mark} number={found[mark]} />
        ))}
    </p>
  );
}

/** All differences as text. */
export function ChangeList({ diff, before, after }: Pick<FlowChange, "diff"> & Partial<FlowChange>) {
  /** A value in full where it is one of the node, else the piece around the change. */
  const full = (side: FlowChange["before"] | undefined, id: string, name: string) =>
    side?.nodes.find((node) => node.id === id)?.params.find((one) => one.name === name && !one.cut)?.value;
  const arrow = (edge: Difference["connected"][number]) =>
    `${edge.source}${edge.output && `.${edge.output}`} → ${edge.target}${edge.input && `.${edge.input}`}`;
  const items: [Mark, string, ReactNode][] = [
    ...diff.added.map((node): [Mark, string, ReactNode] => ["added", `+${node.id}`, <Titled key="t" {...node} />]),
    ...diff.removed.map((node): [Mark, string, ReactNode] => ["removed", `-${node.id}`, <Titled key="t" {...node} />]),
    ...diff.changed.map((node): [Mark, string, ReactNode] => [
      "changed",
      `~${node.id}`,
      <div key="t" className="stack tight">
        <Titled {...node} />
        {node.fields.map((field) => (
          <div key={field.name} className="old-new">
            <small>{field.name}</small>
            <TextDiff
              before={readable(full(before, node.id, field.name) ?? field.before)}
              after={readable(full(after, node.id, field.name) ?? field.after) || t("(none)")}
            />
          </div>
        ))}
      </div>,
    ]),
    ...diff.connected.map((edge): [Mark, string, ReactNode] => [
      "added",
      `+${arrow(edge)}`,
      <code key="t">{arrow(edge)}</code>,
    ]),
    ...diff.disconnected.map((edge): [Mark, string, ReactNode] => [
      "removed",
      `-${arrow(edge)}`,
      <code key="t">{arrow(edge)}</code>,
    ]),
    ...(diff.settings ?? []).map((one): [Mark, string, ReactNode] => [
      "changed",
      one.path,
      <div key="t" className="old-new">
        <span>
          <strong>{worded(one, "name")}</strong> <small>{one.path}</small>
        </span>
        <TextDiff before={one.before} after={one.after || t("(none)")} />
      </div>,
    ]),
    ...(diff.moved.length > 0 ? [["moved", "moved", diff.moved.join(", ")] as [Mark, string, ReactNode]] : []),
  ];
  if (items.length === 0) return <p className="quiet">{t("No differences.")}</p>;
  return (
    <ul className="change-list">
      {items.map(([mark, key, content]) => (
        <li key={key}>
          <MarkBadge mark={mark} />
          {content}
        </li>
      ))}
    </ul>
  );
}

function Titled({ id, name, label }: { id: string; name: string; label: string }) {
  return (
    <span>
      <strong>{label}</strong>{" "}
      <small>
        {name} · <code>{id}</code>
      </small>
    </span>
  );
}
