import { type ReactNode, useMemo, useState } from "react";
import { Tabs } from "../ui/Tabs";
import { FlowCanvas } from "./FlowCanvas";
import { MarkBadge } from "./MarkBadge";
import { counts, type Marked, merged, unmarked } from "./merge";
import { NodeDetails } from "./NodeDetails";
import { type Op, opInWords } from "./ops";
import type { Difference, FlowChange, Mark } from "./types";
import "./flow.css";

type Side = "before" | "change" | "after";

/** What changes in a flow: on the canvas with before and after, as a list to read, and as ops. */
export function FlowDiff({ change, height }: { change: FlowChange; height?: string }) {
  const ops = change.ops as Op[];
  const tabs = [
    { name: "Canvas", content: <ChangeCanvas change={change} {...(height && { height })} /> },
    { name: "List", content: <ChangeList diff={change.diff} /> },
    ...(ops.length > 0 ? [{ name: `Ops (${ops.length})`, content: <OpList ops={ops} /> }] : []),
  ];
  return (
    <div className="stack tight">
      <p>{change.diff.summary}</p>
      <Tabs label="The change" tabs={tabs} />
    </div>
  );
}

function ChangeCanvas({ change, height }: { change: FlowChange; height?: string }) {
  const [side, setSide] = useState<Side>("change");
  const [chosen, setChosen] = useState<string | null>(null);
  const both = useMemo(() => merged(change), [change]);
  const shown = useMemo<Marked>(() => {
    const view = side === "change" ? null : change[side];
    return view ? unmarked(view) : both;
  }, [side, change, both]);
  const marked = shown.nodes.find(({ node }) => node.id === chosen);
  const sides: [Side, string][] = [
    ...(change.before ? [["before", sideName("Before", change.before_label)] as [Side, string]] : []),
    ["change", "Changes"],
    ...(change.after ? [["after", sideName("After", change.after_label)] as [Side, string]] : []),
  ];
  return (
    <div className="stack tight">
      <div className="row apart">
        <fieldset className="choices" aria-label="Which state to show">
          {sides.map(([value, name]) => (
            <button key={value} type="button" aria-pressed={side === value} onClick={() => setSide(value)}>
              {name}
            </button>
          ))}
        </fieldset>
        <Legend marked={both} />
      </div>
      <div className={marked ? "change-canvas with-details" : "change-canvas"}>
        <FlowCanvas
          // Another state is another drawing: fit it to the view again.
          key={side}
          flow={shown}
          label={`The flow, ${sides.find(([value]) => value === side)?.[1] ?? side}. ${change.diff.summary}`}
          chosen={chosen}
          onChoose={setChosen}
          {...(height && { height })}
        />
        {marked && <NodeDetails marked={marked} onClose={() => setChosen(null)} />}
      </div>
      <small>Choose a node to see what is set on it, old and new.</small>
    </div>
  );
}

/** "Before", or "Before: v1.0" where the state has a name of its own. */
const sideName = (side: string, label: string): string =>
  label.toLowerCase() === side.toLowerCase() ? side : `${side}: ${label}`;

function Legend({ marked }: { marked: Marked }) {
  const found = counts(marked);
  return (
    <p className="row">
      {(["added", "changed", "removed", "moved"] as const)
        .filter((mark) => found[mark] > 0)
        .map((mark) => (
          <span key={mark}>
            {found[mark]} <MarkBadge mark={mark} />
          </span>
        ))}
    </p>
  );
}

/** Every difference in words. */
export function ChangeList({ diff }: { diff: Difference }) {
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
            <pre className="old">{field.before || "(none)"}</pre>
            <pre className="new">{field.after || "(none)"}</pre>
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
    ...(diff.moved.length > 0 ? [["moved", "moved", diff.moved.join(", ")] as [Mark, string, ReactNode]] : []),
  ];
  if (items.length === 0) return <p className="quiet">There is no difference.</p>;
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

/** The ops in order: what each does, and its exact form to unfold. */
export function OpList({ ops }: { ops: Op[] }) {
  return (
    <ol className="stack tight">
      {ops.map((op, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: ops have no name of their own, and their order is fixed
        <li key={index}>
          <details>
            <summary>{opInWords(op)}</summary>
            <pre>{JSON.stringify(op, null, 2)}</pre>
          </details>
        </li>
      ))}
    </ol>
  );
}
