import type { ReactNode } from "react";
import { t } from "../i18n";
import { said } from "../i18n/sentences";

interface Props {
  error: unknown;
  /** Instead of the hint of the error. */
  advice?: string;
  children?: ReactNode;
}

/** An error with its hint, as the service words them. */
export function ErrorText({ error, advice, children }: Props) {
  if (!error) return null;
  const { message, hint } = error as { message?: string; hint?: string };
  const next = advice ?? said(hint ?? "");
  return (
    <div role="alert" className="note bad">
      <p>{message ? said(message) : t("Something went wrong.")}</p>
      {next && <p>{next}</p>}
      {children}
    </div>
  );
}
