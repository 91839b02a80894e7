import { useRef } from "react";

interface Props {
  label: string;
  /** What a screen reader says when the label alone is not enough. */
  name?: string;
  question: string;
  yes: string;
  busy?: boolean;
  plain?: boolean;
  onYes: () => void;
}

/** A button for what cannot be undone: it asks first. */
export function ConfirmButton({ label, name = label, question, yes, busy = false, plain = false, onYes }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button
        type="button"
        className={plain ? "button plain" : "button"}
        aria-label={name}
        disabled={busy}
        onClick={() => dialog.current?.showModal()}
      >
        {label}
      </button>
      <dialog ref={dialog} aria-label={name}>
        <div className="stack">
          <p className="words">{question}</p>
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
            <button type="button" className="button" onClick={() => dialog.current?.close()}>
              No, go back
            </button>
          </div>
        </div>
      </dialog>
    </>
  );
}
