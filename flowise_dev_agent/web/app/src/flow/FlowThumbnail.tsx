import { useQuery } from "@tanstack/react-query";
import { memo, useMemo } from "react";
import { flowGraph } from "../api/queries";
import type { CanvasView } from "../api/types";
import { bareNode, bounds, boxesOf, inWords, tone } from "./layout";
import "./flow.css";

const WIDTH = 160;
const HEIGHT = 96;

/** The thumbnail of a flow on the server; an empty frame while it loads or when it cannot be read. */
export function LiveThumbnail({ id, instance }: { id: string; instance?: string }) {
  const { data } = useQuery(flowGraph(id, instance, false));
  return data ? <FlowThumbnail view={data.graph} /> : <span className="thumbnail empty" aria-hidden="true" />;
}

/** The picture of an example: nodes of these categories, all feeding the last one. */
export function Sketch({ categories }: { categories: readonly string[] }) {
  const view = useMemo(() => sketch(categories), [categories]);
  return <FlowThumbnail view={view} />;
}

function sketch(categories: readonly string[]): CanvasView {
  const last = categories.length - 1;
  const nodes = categories.map((category, index) =>
    bareNode(String(index), category, {
      x: index === last ? 420 : 0,
      y: index === last ? ((last - 1) * 130) / 2 : index * 130,
    }),
  );
  const edges = nodes.slice(0, last).map((node) => ({
    id: node.id,
    source: node.id,
    source_handle: "",
    output: "",
    target: String(last),
    target_handle: "",
    input: "",
    label: "",
  }));
  return { kind: "CHATFLOW", nodes, edges, cut: false };
}

/** Boxes and lines without text, cheap enough for lists. */
const FlowThumbnail = memo(function FlowThumbnail({ view }: { view: CanvasView }) {
  const boxes = useMemo(() => boxesOf(view.nodes), [view]);
  const all = bounds(boxes.values());
  const margin = Math.max(all.width, all.height) * 0.05;
  const viewBox = [all.x - margin, all.y - margin, all.width + 2 * margin, all.height + 2 * margin].join(" ");
  const stroke = Math.max(all.width / WIDTH, all.height / HEIGHT) * 1.5;
  return (
    <svg className="thumbnail" viewBox={viewBox} width={WIDTH} height={HEIGHT} role="img" aria-label={inWords(view)}>
      {view.edges.map((edge) => {
        const [from, to] = [boxes.get(edge.source), boxes.get(edge.target)];
        if (!from || !to) return null;
        const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
        const [x2, y2] = [to.x, to.y + to.height / 2];
        const bend = Math.abs(x2 - x1) / 2;
        return (
          <path
            key={edge.id}
            d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
            strokeWidth={stroke}
          />
        );
      })}
      {view.nodes.map((node) => {
        const box = boxes.get(node.id);
        if (!box) return null;
        return <rect key={node.id} className={`tone-${tone(node)}`} {...box} rx={stroke * 4} strokeWidth={stroke} />;
      })}
    </svg>
  );
});
