import { type FormEvent, useEffect, useRef, useState } from "react";
import { onKeyNeeded } from "../api/client";
import { t } from "../i18n";

/** Asks for AGENT_API_KEY when a call needs it. */
export function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [waiting, setWaiting] = useState<{ wrong: boolean; resolve: (key: string) => void } | null>(null);
  const [key, setKey] = useState("");

  useEffect(() => onKeyNeeded((wrong) => new Promise((resolve) => setWaiting({ wrong, resolve }))), []);
  useEffect(() => {
    if (waiting) dialog.current?.showModal();
  }, [waiting]);

  function submit(event: FormEvent) {
    event.preventDefault();
    dialog.current?.close();
    waiting?.resolve(key.trim());
    setWaiting(null);
    setKey("");
  }

  return (
    // Nothing can be shown without the key, so Escape does not close the dialog.
    <dialog ref={dialog} aria-labelledby="key-title" onCancel={(event) => event.preventDefault()}>
      <form onSubmit={submit} className="stack">
        <h2 id="key-title">{t("API key required")}</h2>
        {waiting?.wrong && (
          <p role="alert" className="note bad">
            {t("Wrong key.")}
          </p>
        )}
        <label className="field">
          {t("Key")}
          <input
            type="password"
            autoComplete="off"
            required
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
          <small>{t("The value of AGENT_API_KEY on the server. This tab stores it until it is closed.")}</small>
        </label>
        <div className="actions">
          <button type="submit" className="button primary">
            {t("Continue")}
          </button>
        </div>
      </form>
    </dialog>
  );
}
