import { type ReactNode, useRef } from "react";
import { t } from "../i18n";

interface Props {
  label: string;
  /** For screen readers, where the label alone is ambiguous. */
  name?: string;
  question: string;
  /** The consequences. */
  children?: ReactNode;
  /** Label of the confirming button. */
  yes: string;
  busy?: boolean;
  look?: "plain" | "danger";
  onYes: () => void;
}

/** A button that asks for confirmation; the safe answer has the focus. */
export function ConfirmButton({ label, name = label, question, children, yes, busy = false, look, onYes }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const safe = useRef<HTMLButtonElement>(null);
  const close = () => {
    dialog.current?.close();
    // The menu that the button is in has done its work, too.
    dialog.current?.closest<HTMLElement>(":popover-open")?.hidePopover();
  };
  return (
    <>
      <button
        type="button"
        className={look ? `button ${look}` : "button"}
        aria-label={name}
        disabled={busy}
        onClick={() => {
          dialog.current?.showModal();
          safe.current?.focus();
        }}
      >
        {label}
      </button>
      <dialog ref={dialog} aria-label={question}>
        <div className="stack">
          <h2 className="words">{question}</h2>
          {children}
          <div className="actions">
            <button
              type="button"
              className="button danger"
              onClick={() => {
                close();
                onYes();
              }}
            >
              {yes}
            </button>
            <button ref={safe} type="button" className="button" onClick={close}>
              {t("No, go back")}
            </button>
          </div>
        </div>
      </dialog>
    </>
  );
}
