import { useEffect, useRef, useState } from "react";
import type { SessionEvent } from "../api/types";
import { answerTo } from "./timeline";

/** Notices that the question on screen was answered, but not from here. */
export function useElsewhere(open: string | null, events: readonly SessionEvent[]) {
  const mine = useRef(new Set<string>());
  const shown = useRef<string | null>(null);
  const [lost, setLost] = useState<string | null>(null);

  useEffect(() => {
    const before = shown.current;
    shown.current = open;
    if (before && before !== open && !mine.current.has(before)) setLost(before);
  }, [open]);

  return {
    /** How the lost question was answered: "" while that is not known yet, null when none was lost. */
    notice: lost === null ? null : (answerTo(events, lost) ?? ""),
    close: () => setLost(null),
    mark: (interruptId: string, isMine: boolean) => {
      if (isMine) mine.current.add(interruptId);
      else mine.current.delete(interruptId);
    },
  };
}

export function Elsewhere({ notice, onClose }: { notice: string | null; onClose: () => void }) {
  if (notice === null) return null;
  return (
    <div role="status" className="note warn">
      <p>
        The question was answered in another place meanwhile{notice ? <strong>: {notice}.</strong> : "."} The session
        goes on with that answer.
      </p>
      <div>
        <button type="button" className="button plain" onClick={onClose}>
          Understood
        </button>
      </div>
    </div>
  );
}
