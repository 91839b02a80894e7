import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { caller } from "../api/queries";
import type { NewShare } from "../api/types";
import { t } from "../i18n";
import { useDialog } from "../ui/FormDialog";

const ShareDialog = lazy(() => import("./ShareDialog").then((module) => ({ default: module.ShareDialog })));

interface Props {
  subject: NewShare["subject"];
  id: string;
}

/** Opens the links that show this session, or the history of this flow; for those who may make them. */
export function ShareButton({ subject, id }: Props) {
  const { isOpen, opens, onClosed } = useDialog();
  const { data: person } = useQuery(caller());
  if (!person?.scopes.includes("build")) return null;
  return (
    <>
      <button {...opens} className="button plain">
        {t("Share")}
      </button>
      {isOpen && (
        <Suspense>
          <ShareDialog subject={subject} id={id} onClosed={onClosed} />
        </Suspense>
      )}
    </>
  );
}
