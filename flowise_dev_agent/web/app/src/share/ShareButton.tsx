import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useRef, useState } from "react";
import { caller } from "../api/queries";
import type { NewShare } from "../api/types";
import { t } from "../i18n";
import { focusBack } from "../ui/keepFocus";

const ShareDialog = lazy(() => import("./ShareDialog").then((module) => ({ default: module.ShareDialog })));

interface Props {
  subject: NewShare["subject"];
  id: string;
}

/** Opens the links that show this session, or the history of this flow; for those who may make them. */
export function ShareButton({ subject, id }: Props) {
  const opener = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const { data: person } = useQuery(caller());
  if (!person?.scopes.includes("build")) return null;
  return (
    <>
      <button ref={opener} type="button" className="button plain" onClick={() => setOpen(true)}>
        {t("Share")}
      </button>
      {open && (
        <Suspense>
          <ShareDialog
            subject={subject}
            id={id}
            onClosed={() => {
              setOpen(false);
              focusBack(opener.current);
            }}
          />
        </Suspense>
      )}
    </>
  );
}
