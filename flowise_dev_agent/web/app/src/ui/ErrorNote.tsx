import { lazy, type ReactNode, Suspense } from "react";
import { t } from "../i18n";
import { ErrorText } from "./ErrorText";

const AddCredential = lazy(() => import("./AddCredential").then((module) => ({ default: module.AddCredential })));

/** An error with its hint; a secret in a text can be stored as a credential at once. */
export function ErrorNote({ error, children }: { error: unknown; children?: ReactNode }) {
  if ((error as { code?: string } | null)?.code !== "secret_in_text")
    return <ErrorText error={error}>{children}</ErrorText>;
  const advice = t("Nothing was stored. Add it as a credential, take it out of the text, and send the text again.");
  return (
    <ErrorText error={error} advice={advice}>
      <Suspense>
        <AddCredential />
      </Suspense>
      {children}
    </ErrorText>
  );
}
