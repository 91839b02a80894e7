import { type FormEvent, useEffect, useRef, useState } from "react";
import { onKeyNeeded } from "../api/client";
import { ROOT } from "../api/early";
import { t } from "../i18n";

interface Waiting {
  wrong: boolean;
  signIn: string | undefined;
  resolve: (key: string) => void;
}

/** Asks for a key when a call needs it, or to sign in where the service knows people. */
export function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [waiting, setWaiting] = useState<Waiting | null>(null);
  const [key, setKey] = useState("");

  useEffect(() => onKeyNeeded((wrong, signIn) => new Promise((resolve) => setWaiting({ wrong, signIn, resolve }))), []);
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
        <h2 id="key-title">{waiting?.signIn ? t("Sign in") : t("API key required")}</h2>
        {waiting?.signIn && (
          <>
            <a
              className="button primary"
              href={`${ROOT}${waiting.signIn}?return_to=${encodeURIComponent(location.hash)}`}
            >
              {t("Sign in")}
            </a>
            <p className="quiet">{t("Or use a key of the service:")}</p>
          </>
        )}
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
          <button type="submit" className={waiting?.signIn ? "button" : "button primary"}>
            {t("Continue")}
          </button>
        </div>
      </form>
    </dialog>
  );
}
