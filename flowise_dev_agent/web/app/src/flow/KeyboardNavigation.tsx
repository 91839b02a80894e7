import { useReactFlow, useStore } from "@xyflow/react";
import { useEffect, useRef } from "react";
import { type Box, nextTo } from "./layout";

interface Props {
  boxes: Map<string, Box>;
  /** The person has come to this node. */
  onVisit: (id: string) => void;
  onLeave: () => void;
}

const idOf = (target: EventTarget | null): string | undefined =>
  target instanceof HTMLElement && target.classList.contains("react-flow__node") ? target.dataset.id : undefined;

/** The canvas by keyboard: arrow keys lead from node to node, also to one out of sight; Escape closes the details. */
export function KeyboardNavigation({ boxes, onVisit, onLeave }: Props) {
  const canvas = useStore((state) => state.domNode);
  const { setCenter, getZoom } = useReactFlow();
  const last = useRef<string | null>(null);
  useEffect(() => {
    if (!canvas) return;
    const focusOn = (id: string) => {
      const node = canvas.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(id)}"]`);
      node?.focus();
      return node !== null;
    };
    const go = async (id: string) => {
      const box = boxes.get(id);
      if (focusOn(id) || !box) return;
      await setCenter(box.x + box.width / 2, box.y + box.height / 2, { zoom: getZoom() });
      requestAnimationFrame(() => focusOn(id));
    };
    const pressed = (event: KeyboardEvent) => {
      const id = idOf(event.target);
      // With these keys a node is changed, not left.
      if (event.shiftKey || event.ctrlKey || event.metaKey) return;
      const next = id && nextTo(boxes, id, event.key);
      if (!id || (!next && event.key !== "Escape")) return;
      event.preventDefault();
      // React Flow would take the focus away.
      event.stopPropagation();
      if (next) void go(next);
      else onLeave();
    };
    const focused = (event: FocusEvent) => {
      const id = idOf(event.target);
      if (id) {
        last.current = id;
        onVisit(id);
      } else if (last.current && event.target instanceof Element && event.target.matches(".react-flow__nodes")) {
        // The node left the picture when its details took room, and the focus with it.
        const gone = last.current;
        requestAnimationFrame(() => void go(gone));
      }
    };
    canvas.addEventListener("keydown", pressed, true);
    canvas.addEventListener("focusin", focused);
    return () => {
      canvas.removeEventListener("keydown", pressed, true);
      canvas.removeEventListener("focusin", focused);
    };
  }, [canvas, boxes, setCenter, getZoom, onVisit, onLeave]);
  return null;
}
