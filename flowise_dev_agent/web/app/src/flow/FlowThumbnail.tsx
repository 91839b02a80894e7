import { memo, useMemo } from "react";
import { bounds, boxesOf, inWords, tone } from "./layout";
import type { CanvasView } from "./types";
import "./flow.css";

/** A flow in the size of a stamp: boxes and lines, no text. Cheap enough for lists. */
export const FlowThumbnail = memo(function FlowThumbnail({
  view,
  width = 160,
  height = 96,
}: {
  view: CanvasView;
  width?: number;
  height?: number;
}) {
  const boxes = useMemo(() => boxesOf(view.nodes), [view]);
  const all = bounds(boxes.values());
  const margin = Math.max(all.width, all.height) * 0.05;
  const viewBox = [all.x - margin, all.y - margin, all.width + 2 * margin, all.height + 2 * margin].join(" ");
  const stroke = Math.max(all.width / width, all.height / height) * 1.5;
  return (
    <svg className="thumbnail" viewBox={viewBox} width={width} height={height} role="img" aria-label={inWords(view)}>
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
