/** The flow as an indented list, in which it is built by keyboard and on a phone: the same draft as the picture. */
import { useMemo } from "react";
import { t } from "../i18n";
import { type Building, isStep } from "./building";
import { NodeIcon } from "./icons";
import { outlineOf } from "./outline";

interface Props {
  building: Building;
  chosen: string | null;
  onChoose: (id: string) => void;
}

export function Outline({ building, chosen, onChoose }: Props) {
  const { nodes, edges, findings } = building;
  const rows = useMemo(() => outlineOf(nodes, edges), [nodes, edges]);
  return (
    <ol className="plain outline" aria-label={t("The flow as a list")}>
      {rows.map(({ node, number, depth, branch }) => {
        const wrong = findings.get(node.id)?.filter((one) => one.severity === "error").length ?? 0;
        const [port] = isStep(node) ? node.outputs : [];
        return (
          <li key={node.id} style={{ marginLeft: `${depth * 1.2}em` }}>
            {branch && <small className="outline-branch">{branch}</small>}
            <span className="outline-row">
              <button
                type="button"
                className="button plain outline-name"
                aria-current={node.id === chosen}
                onClick={() => onChoose(node.id)}
              >
                <small>{number}</small>
                <NodeIcon node={node} />
                <span className="clip">{node.label}</span>
                {wrong > 0 && (
                  <span className="outline-finding">{t("Still missing: {{number}}", { number: wrong })}</span>
                )}
              </button>
              {port && node.outputs.length === 1 && (
                <button
                  type="button"
                  className="button plain small"
                  aria-label={t("What follows {{node}}?", { node: node.label })}
                  onClick={() => {
                    const edge = edges.find((one) => one.source === node.id);
                    building.ask(edge ? { kind: "line", edge } : { kind: "output", node, port });
                  }}
                >
                  +
                </button>
              )}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
