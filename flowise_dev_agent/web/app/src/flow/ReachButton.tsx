import { lazy, Suspense } from "react";
import { t } from "../i18n";
import { useDialog } from "../ui/FormDialog";

const ReachDialog = lazy(() => import("./Reach").then((module) => ({ default: module.ReachDialog })));

interface Props {
  chatflowId: string;
  instance: string | undefined;
  className?: string;
}

/** Opens the ways to give a flow to people. */
export function ReachButton({ chatflowId, instance, className = "button" }: Props) {
  const { isOpen, opens, onClosed } = useDialog();
  return (
    <>
      <button {...opens} className={className}>
        {t("Give it to people")}
      </button>
      {isOpen && (
        <Suspense>
          <ReachDialog chatflowId={chatflowId} instance={instance} onClosed={onClosed} />
        </Suspense>
      )}
    </>
  );
}
