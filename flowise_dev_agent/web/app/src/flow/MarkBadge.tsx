import type { Mark } from "./types";

export const SIGNS: Record<Mark, string> = { same: "", added: "+", changed: "~", removed: "−", moved: "↔" };

/** The mark as sign and word, so that colour is never all that says it. */
export function MarkBadge({ mark }: { mark: Mark }) {
  if (mark === "same") return null;
  return (
    <span className={`mark mark-${mark}`}>
      <span aria-hidden="true">{SIGNS[mark]}</span> {mark}
    </span>
  );
}
