import { t } from "../i18n";
import type { Mark } from "./merge";
import "./flow.css";

export const SIGNS: Record<Mark, string> = { same: "", added: "+", changed: "~", removed: "−", moved: "↔" };

/** The mark as sign and word, so that it does not depend on colour; with how many of them there are. */
export function MarkBadge({ mark, number }: { mark: Mark; number?: number }) {
  if (mark === "same") return null;
  return (
    <span className={`mark mark-${mark}`}>
      <span aria-hidden="true">{SIGNS[mark]}</span> {number} {t(mark)}
    </span>
  );
}
