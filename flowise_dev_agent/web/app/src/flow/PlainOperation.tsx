/** Copy or rename a flow: a name and nothing else, so that no words are read. */
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { startSession } from "../api/sessions";
import { t } from "../i18n";
import { newKey } from "../sessions/start";
import { ErrorNote } from "../ui/ErrorNote";
import { FormDialog, useDialog } from "../ui/FormDialog";
import { TextInput } from "../ui/TextInput";

interface Props {
  operation: "copy" | "update";
  flow: { id: string; name: string };
  instance: string;
  className?: string;
}

/** The button, and the dialog that it opens. */
export function PlainOperation({ className = "button", ...props }: Props) {
  const { isOpen, opens, onClosed } = useDialog();
  return (
    <>
      <button {...opens} className={className}>
        {props.operation === "copy" ? t("Copy") : t("Rename")}
      </button>
      {isOpen && (
        <FormDialog titled="plain-title" onClosed={onClosed}>
          {(close) => <NameOfFlow {...props} onClose={close} />}
        </FormDialog>
      )}
    </>
  );
}

const MOST_CHARACTERS = 120;

function NameOfFlow({ operation, flow, instance, onClose }: Props & { onClose: () => void }) {
  const copies = operation === "copy";
  const first = copies ? t("Copy of {{name}}", { name: flow.name }).slice(0, MOST_CHARACTERS) : flow.name;
  const [name, setName] = useState(first);
  const [, go] = useLocation();
  // The key changes only with the name: pressing twice starts one session.
  const attempt = useRef({ name: "", key: "" });
  const start = useMutation({
    mutationFn: (new_name: string) => {
      if (attempt.current.name !== new_name) attempt.current = { name: new_name, key: newKey() };
      const body = { operation, target: flow.id, new_name, ...(instance && { flowise_instance_id: instance }) };
      return startSession(body, attempt.current.key);
    },
    onSuccess: (session) => {
      onClose();
      go(`/s/${session.thread_id}`);
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (name.trim()) start.mutate(name.trim());
  }
  return (
    <form className="stack" onSubmit={submit}>
      <h2 id="plain-title">
        {copies ? t("Copy “{{name}}”", { name: flow.name }) : t("Rename “{{name}}”", { name: flow.name })}
      </h2>
      <label className="field">
        {copies ? t("Name of the copy") : t("New name")}
        <TextInput most={MOST_CHARACTERS} required value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <p className="quiet">{t("No model is needed. You review the plan before anything is written.")}</p>
      <ErrorNote error={start.error} />
      <div className="actions">
        <button type="submit" className="button primary" disabled={start.isPending}>
          {start.isPending ? t("Starting the session…") : copies ? t("Copy") : t("Rename")}
        </button>
        <button type="button" className="button" onClick={onClose}>
          {t("Cancel")}
        </button>
      </div>
    </form>
  );
}
