import { type ReactNode, useRef } from "react";

interface Props {
  label: string;
  /** What a screen reader says when the label alone is not enough. */
  name?: string;
  question: string;
  /** What follows from it. */
  children?: ReactNode;
  /** The word on the button that does it. */
  yes: string;
  busy?: boolean;
  look?: "plain" | "danger";
  onYes: () => void;
}

/** A button for what matters or cannot be undone: it asks first, and the safe answer has the focus. */
export function ConfirmButton({ label, name = label, question, children, yes, busy = false, look, onYes }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const safe = useRef<HTMLButtonElement>(null);
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
                dialog.current?.close();
                onYes();
              }}
            >
              {yes}
            </button>
            <button ref={safe} type="button" className="button" onClick={() => dialog.current?.close()}>
              No, go back
            </button>
          </div>
        </div>
      </dialog>
    </>
  );
}
