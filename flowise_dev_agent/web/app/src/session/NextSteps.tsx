import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useRef } from "react";
import { useLocation } from "wouter";
import { startSession } from "../api/sessions";
import { t } from "../i18n";
import { EMPTY, newKey, requestOf } from "../sessions/start";
import { ErrorNote } from "../ui/ErrorNote";
import { useDraft } from "../ui/useDraft";
import { tooLong } from "./questions/controls";

interface Props {
  chatflowId: string;
  instance: string;
  /** Of the flow in Flowise; null when its address is not known. */
  url: string | null;
  onTry: () => void;
}

/** What a person does with a finished flow: change it, try it, or open it in Flowise. */
export function NextSteps({ chatflowId, instance, url, onTry }: Props) {
  const [text, setText] = useDraft(`change:${chatflowId}`, "");
  const [, go] = useLocation();
  const field = useRef<HTMLTextAreaElement>(null);
  // The key changes only with the text: pressing twice starts one session.
  const attempt = useRef({ text: "", key: "" });
  const change = useMutation({
    mutationFn: (requirement: string) => {
      if (attempt.current.text !== requirement) attempt.current = { text: requirement, key: newKey() };
      const target = { id: chatflowId, name: "" };
      const draft = { ...EMPTY, requirement, operation: "update" as const, target, instance };
      return startSession(requestOf(draft), attempt.current.key);
    },
    onSuccess: (started) => {
      setText(null);
      go(`/s/${started.thread_id}`);
    },
  });

  function submit(event?: FormEvent) {
    event?.preventDefault();
    if (text.trim() && !tooLong(text)) change.mutate(text.trim());
    else field.current?.focus();
  }

  return (
    <section className="dock" aria-labelledby="next-title">
      <h2 id="next-title" className="visually-hidden">
        {t("What next?")}
      </h2>
      <div className="dock-row">
        <button type="button" className="button" onClick={onTry}>
          {t("Try it")}
        </button>
        {url && (
          <a className="button" href={url} target="_blank" rel="noopener noreferrer">
            {t("Open in Flowise")}
          </a>
        )}
      </div>
      <form className="composer-row" onSubmit={submit}>
        <label className="field">
          <span className="visually-hidden">{t("What should be different?")}</span>
          <textarea
            ref={field}
            rows={1}
            placeholder={t("What should be different?")}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
            }}
          />
          <span role="alert" className="problem">
            {tooLong(text)}
          </span>
        </label>
        <button type="submit" className="button primary" disabled={change.isPending}>
          {t("Change it")}
        </button>
      </form>
      <ErrorNote error={change.error} />
    </section>
  );
}
