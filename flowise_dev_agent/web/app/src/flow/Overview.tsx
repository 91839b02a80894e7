/** The whole flow in small, with the part that is in sight while there is more. A press or a drag goes there. */
import { Panel, useReactFlow, useStoreApi } from "@xyflow/react";
import { memo, type PointerEvent, useEffect, useMemo, useRef } from "react";
import { t } from "../i18n";
import { type Box, bounds, boxesOf } from "./layout";
import type { Mark, MarkedNode } from "./merge";

const WIDTH = 200;
const HEIGHT = 140;
const MARKS: Mark[] = ["same", "moved", "changed", "added", "removed"];

export const Overview = memo(function Overview({ nodes }: { nodes: MarkedNode[] }) {
  const store = useStoreApi();
  const { setCenter, getZoom } = useReactFlow();
  const panel = useRef<HTMLDivElement>(null);
  const sight = useRef<HTMLDivElement>(null);
  const { all, scale, paths } = useMemo(() => drawingOf(nodes), [nodes]);
  // Beside React: it moves with each step of a drag, and nothing else here does.
  useEffect(() => {
    const place = () => {
      const { transform, width, height } = store.getState();
      const [x, y, zoom] = transform;
      const sees = (at: number, from: number, long: number, most: number) =>
        from * zoom + at >= 0 && (from + long) * zoom + at <= most;
      // It would only cover what is all in sight.
      const whole = sees(x, all.x, all.width, width) && sees(y, all.y, all.height, height);
      if (panel.current && panel.current.hidden !== whole) panel.current.hidden = whole;
      if (sight.current)
        Object.assign(sight.current.style, {
          width: `${(width / zoom) * scale}px`,
          height: `${(height / zoom) * scale}px`,
          transform: `translate(${(-x / zoom - all.x) * scale}px, ${(-y / zoom - all.y) * scale}px)`,
        });
    };
    place();
    return store.subscribe(place);
  }, [store, all, scale]);
  const go = (event: PointerEvent<HTMLDivElement>) => {
    if (event.buttons === 0) return;
    const corner = event.currentTarget.getBoundingClientRect();
    const [x, y] = [(event.clientX - corner.x) / scale + all.x, (event.clientY - corner.y) / scale + all.y];
    void setCenter(x, y, { zoom: getZoom() });
  };
  return (
    <Panel ref={panel} position="bottom-right" className="overview">
      <div role="img" aria-label={t("Minimap")} onPointerDown={go} onPointerMove={go}>
        <svg width={all.width * scale} height={all.height * scale} aria-hidden="true">
          {paths.map(([mark, path]) => (
            <path key={mark} className={`mark-${mark}`} d={path} />
          ))}
        </svg>
        <div ref={sight} className="sight" />
      </div>
    </Panel>
  );
});

/** The bounds of the flow, the scale at which they fit, and the boxes as one path for each mark. */
function drawingOf(nodes: MarkedNode[]) {
  const boxes = boxesOf(nodes.map(({ node }) => node));
  const all = bounds(boxes.values());
  const scale = Math.min(WIDTH / all.width, HEIGHT / all.height);
  const small = ({ x, y, width, height }: Box) =>
    `M${(x - all.x) * scale} ${(y - all.y) * scale}h${width * scale}v${height * scale}h${-width * scale}z`;
  const byMark = Map.groupBy(nodes, (one) => one.mark);
  const paths = MARKS.flatMap((mark): [Mark, string][] => {
    const found = byMark.get(mark)?.flatMap(({ node }) => boxes.get(node.id) ?? []) ?? [];
    return found.length > 0 ? [[mark, found.map(small).join("")]] : [];
  });
  return { all, scale, paths };
}
