import { type ReactNode, useEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { focusBack } from "./keepFocus";

/** A dialog and the button that opens it, which gets the focus back: `opens` is for the button, `onClosed` for the dialog. */
export function useDialog() {
  const ref = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  return {
    isOpen,
    opens: { ref, type: "button", "aria-haspopup": "dialog", onClick: () => setOpen(true) } as const,
    onClosed: () => {
      setOpen(false);
      focusBack(ref.current);
    },
  };
}

interface Props {
  /** The id of its title. */
  titled: string;
  onClosed: () => void;
  children: (close: () => void) => ReactNode;
}

/** A dialog with a form of its own, open as long as it is there; not inside of a form that its button may belong to. */
export function FormDialog({ titled, onClosed, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Once: a dialog that was closed a moment ago must not open again when it is drawn again.
  useEffect(() => dialog.current?.showModal(), []);
  return createPortal(
    <dialog
      ref={dialog}
      aria-labelledby={titled}
      onClose={onClosed}
      // It is a child of where its button is: an outer form must not hear of it.
      onKeyDown={(event) => event.stopPropagation()}
      onSubmit={(event) => event.stopPropagation()}
    >
      {children(() => dialog.current?.close())}
    </dialog>,
    document.body,
  );
}
