import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { startSession } from "../api/sessions";
import type { SessionView } from "../api/types";
import { EMPTY, newKey, requestOf } from "../sessions/start";
import { ErrorNote } from "../ui/ErrorNote";

interface Props {
  session: SessionView;
  chatflowId: string;
  onTry: () => void;
}

/** What a person does with a finished flow: change it, try it, or open it in Flowise. */
export function NextSteps({ session, chatflowId, onTry }: Props) {
  const [text, setText] = useState("");
  const [, go] = useLocation();
  const field = useRef<HTMLTextAreaElement>(null);
  // The key changes only with the text: pressing twice starts one session.
  const attempt = useRef({ text: "", key: "" });
  const change = useMutation({
    mutationFn: (requirement: string) => {
      if (attempt.current.text !== requirement) attempt.current = { text: requirement, key: newKey() };
      const target = { id: chatflowId, name: "" };
      const draft = { ...EMPTY, requirement, operation: "update" as const, target, instance: session.instance };
      return startSession(requestOf(draft), attempt.current.key);
    },
    onSuccess: (started) => go(`/s/${started.thread_id}`),
  });

  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim()) change.mutate(text.trim());
    else field.current?.focus();
  }

  return (
    <section className="card stack" aria-labelledby="next-title">
      <h2 id="next-title">What next?</h2>
      <form className="stack tight" onSubmit={submit}>
        <label className="field">
          What should be different?
          <textarea
            ref={field}
            rows={2}
            maxLength={32_000}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <div className="actions">
          <button type="submit" className="button primary" disabled={change.isPending}>
            Change it
          </button>
          <button type="button" className="button" onClick={onTry}>
            Try it
          </button>
          {session.chatflow_url && (
            <a className="button" href={session.chatflow_url} target="_blank" rel="noopener noreferrer">
              Open in Flowise
            </a>
          )}
        </div>
      </form>
      <ErrorNote error={change.error} />
    </section>
  );
}
