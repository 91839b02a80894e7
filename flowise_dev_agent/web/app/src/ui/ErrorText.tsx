import type { ReactNode } from "react";
import { t } from "../i18n";
import { type Texts, worded } from "../i18n/texts";

interface Props {
  error: unknown;
  /** Instead of the hint of the error. */
  advice?: string;
  children?: ReactNode;
}

/** An error with its hint, as the service words them. */
export function ErrorText({ error, advice, children }: Props) {
  if (!error) return null;
  const told = error as { message?: string; hint?: string; texts?: Texts };
  const next = advice ?? worded(told, "hint");
  return (
    <div role="alert" className="note bad">
      <p>{worded(told, "message") || t("Something went wrong.")}</p>
      {next && <p>{next}</p>}
      {children}
    </div>
  );
}
