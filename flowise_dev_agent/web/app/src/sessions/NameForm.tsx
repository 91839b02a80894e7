import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef } from "react";
import { renameSession } from "../api/sessions";
import type { SessionView } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { TextInput } from "../ui/TextInput";
import { useDraft } from "../ui/useDraft";

interface Props {
  session: Pick<SessionView, "thread_id" | "session_name">;
  onRenamed: (view: SessionView) => void;
  onClose: () => void;
}

/** Renames a session; shown in place of the name. */
export function NameForm({ session, onRenamed, onClose }: Props) {
  const [name, setName] = useDraft(`name:${session.thread_id}`, session.session_name ?? "");
  const field = useRef<HTMLInputElement>(null);
  const rename = useMutation({
    mutationFn: () => renameSession(session.thread_id, name.trim()),
    onSuccess: (view) => {
      onRenamed(view);
      close();
    },
  });
  function close() {
    setName(null);
    onClose();
  }
  // The field replaces the button that was just pressed; move the focus here.
  useEffect(() => field.current?.select(), []);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (name.trim()) rename.mutate();
  }
  return (
    <form className="row grow" onSubmit={submit}>
      <TextInput
        ref={field}
        className="grow"
        aria-label={t("Session name")}
        most={120}
        required
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" className="button primary" disabled={rename.isPending}>
        {t("Save")}
      </button>
      <button type="button" className="button" onClick={close}>
        {t("Cancel")}
      </button>
      <ErrorNote error={rename.error} />
    </form>
  );
}
