import { type ReactNode, useEffect, useRef } from "react";

/** Asks before something that matters is done. Escape and the second button leave everything as it is. */
export function Confirm({
  title,
  children,
  action,
  onConfirm,
  onClose,
}: {
  title: string;
  children: ReactNode;
  /** The word on the button that does it. */
  action: string;
  onConfirm: () => void;
  onClose: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose} className="confirm">
      <div className="stack">
        <h2>{title}</h2>
        {children}
        <div className="actions">
          <button
            type="button"
            className="button danger"
            onClick={() => {
              onConfirm();
              dialog.current?.close();
            }}
          >
            {action}
          </button>
          <button type="button" className="button" onClick={() => dialog.current?.close()}>
            Leave it as it is
          </button>
        </div>
      </div>
    </dialog>
  );
}
