/** What can be done with a node of a flow that is built: its name, its lines, its place, and what is missing. */
import { type ReactNode, useContext } from "react";
import type { CanvasNode } from "../api/types";
import { t } from "../i18n";
import { type Building, cut, isStep, portName } from "./building";
import { EditingContext } from "./edits";
import { goTo, isJoin, placeOf, saidAt } from "./mending";

/** Findings that are shown at once: more of them would push the fields away that mend them. */
const FEW = 2;

interface Props {
  node: CanvasNode;
  building: Building;
  /** Its settings. */
  children: ReactNode;
}

export function BuildSection({ node, building, children }: Props) {
  const editing = useContext(EditingContext);
  if (!editing) return null;
  const found = building.findings.get(node.id) ?? [];
  return (
    <div className="stack tight build-section">
      {found.length > 0 && (
        <details open={found.length <= FEW}>
          <summary className={found.some((one) => one.severity === "error") ? "problem" : ""}>
            {t("Still missing: {{number}}", { number: found.length })}
          </summary>
          <ul className="plain stack tight" aria-label={t("What is missing here")}>
            {found.map((one) => {
              const place = placeOf(one, node);
              return (
                <li key={`${one.code} ${one.field}`} className={one.severity === "error" ? "note bad" : "note warn"}>
                  <p>{saidAt(one, node)}</p>
                  {place && (
                    <button type="button" className="button small" onClick={() => building.ask(place)}>
                      {place.kind === "input" ? t("Choose what goes there") : t("Choose what follows")}
                    </button>
                  )}
                  {isJoin(one) &&
                    ends(building, node, node.inputs[0]?.id ?? "").map(({ edge, other }) => (
                      <button
                        key={edge.id}
                        type="button"
                        className="button small"
                        onClick={() => editing.add(cut(edge))}
                      >
                        {t("Disconnect {{node}}", { node: other.label })}
                      </button>
                    ))}
                  {!place && !isJoin(one) && one.field && (
                    <button type="button" className="button small" onClick={() => goTo(one.field)}>
                      {t("Go to the field")}
                    </button>
                  )}
                </li>
              );
            })}
          </ul>
        </details>
      )}
      <label className="field">
        {t("Name")}
        <input
          key={node.label}
          defaultValue={node.label}
          maxLength={200}
          onBlur={({ target }) => {
            const label = target.value.trim();
            if (label && label !== node.label) editing.add({ op_type: "SetLabel", node_id: node.id, label });
          }}
        />
      </label>
      {children}
      {(["inputs", "outputs"] as const).map((side) => {
        const ports = node[side].filter(
          (one) => side === "inputs" || isStep(node) || ends(building, node, one.id).length > 0,
        );
        if (ports.length === 0) return null;
        return (
          <fieldset key={side} className="parts">
            <legend>{side === "inputs" ? t("Comes in") : t("Leads to")}</legend>
            {ports.map((one, index) => (
              <div key={one.id} className="port-row">
                <span>{portName(node, side, index) || (side === "inputs" ? t("Steps before") : t("Next step"))}</span>
                {ends(building, node, one.id).map(({ edge, other }) => (
                  <span key={edge.id} className="chip">
                    <button type="button" className="button plain small" onClick={() => building.choose(other.id)}>
                      {other.label}
                    </button>
                    <button
                      type="button"
                      className="button plain small"
                      aria-label={t("Disconnect {{node}}", { node: other.label })}
                      onClick={() => editing.add(cut(edge))}
                    >
                      ✕
                    </button>
                  </span>
                ))}
                {(side === "inputs" ? node.name !== "startAgentflow" : isStep(node)) && (
                  <button
                    type="button"
                    className="button plain small"
                    aria-label={t("Add to {{list}}", { list: portName(node, side, index) || node.label })}
                    onClick={() => building.ask({ kind: side === "inputs" ? "input" : "output", node, port: one })}
                  >
                    +
                  </button>
                )}
              </div>
            ))}
          </fieldset>
        );
      })}
      <div className="row">
        <button type="button" className="button small" onClick={() => building.ask({ kind: "replace", node })}>
          {t("Replace")}
        </button>
        <button type="button" className="button small" onClick={() => building.duplicate([node])}>
          {t("Duplicate")}
        </button>
        <button type="button" className="button small" onClick={() => building.copy([node])}>
          {t("Copy")}
        </button>
      </div>
    </div>
  );
}

/** What a port is connected to. */
function ends({ nodes, edges }: Building, node: CanvasNode, handle: string) {
  return edges.flatMap((edge) => {
    const here = edge.source === node.id && edge.source_handle === handle;
    if (!here && !(edge.target === node.id && edge.target_handle === handle)) return [];
    const other = nodes.find((one) => one.id === (here ? edge.target : edge.source));
    return other ? [{ edge, other }] : [];
  });
}
