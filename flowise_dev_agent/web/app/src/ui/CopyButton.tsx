import { useState } from "react";
import { t } from "../i18n";

interface Props {
  /** What is copied, as it is when the button is pressed. */
  text: () => string;
  label: string;
  className?: string;
}

/** Copies a text, and says so. */
export function CopyButton({ text, label, className = "button" }: Props) {
  const [copied, setCopied] = useState(false);
  return (
    <span className="row">
      <button
        type="button"
        className={className}
        onClick={() => navigator.clipboard?.writeText(text()).then(() => setCopied(true))}
      >
        {label}
      </button>
      <span role="status" className="quiet">
        {copied && t("Copied")}
      </span>
    </span>
  );
}
