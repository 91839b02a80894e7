import { t } from "../i18n";
import type { Mark } from "./merge";
import "./flow.css";

export const SIGNS: Record<Mark, string> = { same: "", added: "+", changed: "~", removed: "−", moved: "↔" };

/** The mark as sign and word, so that it does not depend on colour. */
export function MarkBadge({ mark }: { mark: Mark }) {
  if (mark === "same") return null;
  return (
    <span className={`mark mark-${mark}`}>
      <span aria-hidden="true">{SIGNS[mark]}</span> {t(mark)}
    </span>
  );
}
