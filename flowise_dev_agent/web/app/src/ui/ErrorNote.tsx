import { lazy, type ReactNode, Suspense } from "react";
import { t } from "../i18n";
import { said } from "../i18n/sentences";

const AddCredential = lazy(() => import("./AddCredential").then((module) => ({ default: module.AddCredential })));

/** An error with its hint, as the service worded them. */
export function ErrorNote({ error, children }: { error: unknown; children?: ReactNode }) {
  if (!error) return null;
  const { message, hint, code } = error as { message?: string; hint?: string; code?: string };
  const secret = code === "secret_in_text";
  return (
    <div role="alert" className="note bad">
      <p>{message ? said(message) : t("Something went wrong.")}</p>
      {secret ? (
        <p>{t("Nothing was stored. Add it as a credential, take it out of the text, and send the text again.")}</p>
      ) : (
        hint && <p>{said(hint)}</p>
      )}
      {secret && (
        <Suspense>
          <AddCredential />
        </Suspense>
      )}
      {children}
    </div>
  );
}
