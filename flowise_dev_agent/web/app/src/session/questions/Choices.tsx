import { type ReactNode, useState } from "react";
import type { Option } from "./shapes";

/** Actions that take something away: they are asked for twice. */
const GRAVE: Record<string, string> = {
  rollback: "Roll back now",
  overwrite: "Overwrite the other change",
  cancel: "End the session",
};

interface Props {
  options: Option[];
  busy: boolean;
  onChoose: (action: string) => void;
  /** Actions that another control of the form offers. */
  without?: string[];
  children?: ReactNode;
}

/** The actions that the question offers, the first one foremost, each with what it does. */
export function Choices({ options, busy, onChoose, without = [], children }: Props) {
  const [grave, setGrave] = useState<Option | null>(null);
  const offered = options.filter((one) => !without.includes(one.value));

  if (grave) {
    return (
      <fieldset className="grave" disabled={busy}>
        <legend>Are you sure? {grave.description}</legend>
        <div className="actions">
          <button
            type="button"
            className="button danger"
            onClick={() => {
              setGrave(null);
              onChoose(grave.value);
            }}
          >
            {GRAVE[grave.value]}
          </button>
          {/* biome-ignore lint/a11y/noAutofocus: the question replaces the button that was just pressed */}
          <button type="button" className="button" autoFocus onClick={() => setGrave(null)}>
            No, go back
          </button>
        </div>
      </fieldset>
    );
  }
  return (
    <div className="answers">
      {children}
      {offered.map((one, index) => (
        <div key={one.value} className="answer">
          <button
            type="button"
            className={index === 0 ? "button primary" : "button"}
            disabled={busy}
            onClick={() => (one.value in GRAVE ? setGrave(one) : onChoose(one.value))}
          >
            {one.label}
          </button>
          {one.description && <small>{one.description}</small>}
        </div>
      ))}
      {busy && <p className="quiet">Sending your answer…</p>}
    </div>
  );
}
