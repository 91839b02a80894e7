import { useQuery } from "@tanstack/react-query";
import { memo, useMemo } from "react";
import { flowGraph } from "../api/queries";
import type { FlowFacts } from "../api/types";
import { t } from "../i18n";
import { plural } from "../ui/format";
import { type Box, bounds, boxesOf, inWords, tone } from "./layout";
import "./flow.css";

const WIDTH = 160;
const HEIGHT = 96;
/** Of a node in the picture of an example. */
const SKETCHED = { width: 280, height: 62 };

interface Drawing {
  boxes: (Box & { tone: string })[];
  /** Numbers of boxes that are connected. */
  lines: { source: number; target: number }[];
  /** For screen readers. */
  label: string;
}

/** The thumbnail of a flow on the server; an empty frame while it loads or when it cannot be read. */
export function LiveThumbnail({ id, instance }: { id: string; instance?: string }) {
  const { data } = useQuery(flowGraph(id, instance, false));
  const drawing = useMemo<Drawing | null>(() => {
    if (!data) return null;
    const { nodes, edges } = data.graph;
    const boxes = boxesOf(nodes);
    const numbers = new Map(nodes.map((node, index) => [node.id, index]));
    return {
      boxes: nodes.map((node) => ({ x: 0, y: 0, width: 1, height: 1, ...boxes.get(node.id), tone: tone(node) })),
      lines: edges.map((edge) => ({
        source: numbers.get(edge.source) ?? -1,
        target: numbers.get(edge.target) ?? -1,
      })),
      label: inWords(data.graph),
    };
  }, [data]);
  return drawing ? <Thumbnail drawing={drawing} /> : <span className="thumbnail empty" aria-hidden="true" />;
}

/** The thumbnail of a flow in a list, which has its picture. */
export function ListedThumbnail({ flow }: { flow: FlowFacts }) {
  const drawing = useMemo<Drawing>(() => {
    const { boxes = [], lines = [] } = flow.picture ?? {};
    return {
      boxes: boxes.map((box) => ({ ...box, tone: toneOf(box.category) })),
      lines,
      label: `${plural(flow.nodes, "node")}: ${flow.node_types.join(", ")}`,
    };
  }, [flow]);
  return <Thumbnail drawing={drawing} />;
}

/** The picture of an example: nodes of these categories, all feeding the last one. */
export function Sketch({ categories }: { categories: readonly string[] }) {
  const drawing = useMemo<Drawing>(() => {
    const last = categories.length - 1;
    return {
      boxes: categories.map((category, index) => ({
        ...SKETCHED,
        x: index === last ? 420 : 0,
        y: index === last ? ((last - 1) * 130) / 2 : index * 130,
        tone: toneOf(category),
      })),
      lines: categories.slice(0, last).map((_, source) => ({ source, target: last })),
      label: t("Example"),
    };
  }, [categories]);
  return <Thumbnail drawing={drawing} />;
}

const toneOf = (category: string) => tone({ category, kind: category === "note" ? "note" : "node" });

/** Boxes and lines without text, cheap enough for lists. */
const Thumbnail = memo(function Thumbnail({ drawing: { boxes, lines, label } }: { drawing: Drawing }) {
  const all = bounds(boxes);
  const margin = Math.max(all.width, all.height) * 0.05;
  const viewBox = [all.x - margin, all.y - margin, all.width + 2 * margin, all.height + 2 * margin].join(" ");
  const stroke = Math.max(all.width / WIDTH, all.height / HEIGHT) * 1.5;
  return (
    <svg className="thumbnail" viewBox={viewBox} width={WIDTH} height={HEIGHT} role="img" aria-label={label}>
      {lines.map(({ source, target }, index) => {
        const [from, to] = [boxes[source], boxes[target]];
        if (!from || !to) return null;
        const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
        const [x2, y2] = [to.x, to.y + to.height / 2];
        const bend = Math.abs(x2 - x1) / 2;
        return (
          <path
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity of their own
            key={index}
            d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
            strokeWidth={stroke}
          />
        );
      })}
      {boxes.map(({ tone, x, y, width, height }, index) => (
        <rect
          // biome-ignore lint/suspicious/noArrayIndexKey: boxes have no identity of their own
          key={index}
          className={`tone-${tone}`}
          {...{ x, y, width, height }}
          rx={stroke * 4}
          strokeWidth={stroke}
        />
      ))}
    </svg>
  );
});
