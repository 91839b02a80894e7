import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useContext, useRef } from "react";
import { useLocation } from "wouter";
import { health } from "../api/queries";
import { startSession } from "../api/sessions";
import { EditingContext } from "../flow/edits";
import { useHandSession } from "../flow/handSession";
import { t } from "../i18n";
import { EMPTY, newKey, requestOf } from "../sessions/start";
import { ErrorNote } from "../ui/ErrorNote";
import { tooLong } from "../ui/tooLong";
import { useDraft } from "../ui/useDraft";

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
  const editing = useContext(EditingContext);
  const byHand = (editing?.edits.length ?? 0) > 0;
  const service = useQuery({ ...health(), enabled: byHand }).data;
  const reads = !byHand || service?.reasoning.engine !== "deterministic";
  const start = useHandSession(chatflowId, instance, editing);
  const change = useMutation({
    mutationFn: async ({ requirement, operation }: { requirement: string; operation: "update" | "auto" }) => {
      if (byHand && operation === "update") {
        await start({ requirement });
        return setText(null);
      }
      const sent = `${operation} ${requirement}`;
      if (attempt.current.text !== sent) attempt.current = { text: sent, key: newKey() };
      const draft = { ...EMPTY, requirement, operation, target: { id: chatflowId, name: "" }, instance };
      const started = await startSession(requestOf(draft), attempt.current.key);
      setText(null);
      go(`/s/${started.thread_id}`);
    },
  });

  function submit(operation: "update" | "auto") {
    if (text.trim() && !tooLong(text)) change.mutate({ requirement: text.trim(), operation });
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
      <form
        className="composer-row"
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          submit("update");
        }}
      >
        <label className="field">
          <span className="visually-hidden">{t("What should be different?")}</span>
          <textarea
            ref={field}
            rows={1}
            placeholder={t("What should be different?")}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit("update");
            }}
          />
          <span role="alert" className="problem">
            {tooLong(text)}
          </span>
        </label>
        <button type="submit" className="button primary" disabled={change.isPending || !reads}>
          {t("Change it")}
        </button>
        <button type="button" className="button" disabled={change.isPending} onClick={() => submit("auto")}>
          {t("Ask about it")}
        </button>
      </form>
      {byHand && (
        <small>
          {reads
            ? t("Your words come on top of your changes, which stay as they are.")
            : t("Without a model words cannot come on top of your changes: build and test them first.")}
        </small>
      )}
      <ErrorNote error={change.error} />
    </section>
  );
}
