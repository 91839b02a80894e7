import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import type { ChatAnswer } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { duration } from "../ui/format";
import { Markdown } from "../ui/Markdown";

interface Turn {
  question: string;
  answer: ChatAnswer;
}

/** A chat with a flow or a draft. Flowise keeps it apart from the conversations of visitors. */
export function TryOut({ chatflowId, instance }: { chatflowId: string; instance?: string }) {
  const [turns, setTurns] = useState<Turn[]>([]);
  const [text, setText] = useState("");
  const chatId = turns.at(-1)?.answer.chat_id;
  const end = useRef<HTMLDivElement>(null);
  const ask = useMutation({
    mutationFn: (question: string) =>
      dataOf(
        api.POST("/flows/{chatflow_id}/chat", {
          params: { path: { chatflow_id: chatflowId }, query: { instance } },
          body: { question, chat_id: chatId },
        }),
      ),
    onSuccess: (answer, question) => setTurns((before) => [...before, { question, answer }]),
    onError: (_, question) => setText(question),
  });
  const forget = useMutation({
    mutationFn: (chat_id: string) =>
      api.DELETE("/flows/{chatflow_id}/chat/{chat_id}", {
        params: { path: { chatflow_id: chatflowId, chat_id }, query: { instance } },
      }),
    onSuccess: () => setTurns([]),
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: scroll to each new turn
  useEffect(() => {
    // `void`, because newer browsers return a promise, which is not a clean-up function.
    void end.current?.scrollIntoView?.({ block: "nearest" });
  }, [turns.length]);

  function submit(event: FormEvent) {
    event.preventDefault();
    const question = text.trim();
    if (!question || ask.isPending) return;
    setText("");
    ask.mutate(question);
  }

  return (
    <section className="stack tight try-out" aria-label={t("Try it here")}>
      <div className="turns stack tight" role="log" aria-live="polite">
        {turns.map(({ question, answer }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: turns are only appended
          <div key={index} className="stack tight">
            <p className="asked">{question}</p>
            <div className="answered">
              <Markdown text={answer.answer || t("(empty answer)")} />
              <small>
                {duration(answer.duration_ms)}
                {answer.used_tools.map((tool) => ` · ${tool.tool}${tool.error ? ` failed: ${tool.error}` : ""}`)}
              </small>
              {answer.sources.length > 0 && (
                <details>
                  <summary>{t("Sources ({{number}})", { number: answer.sources.length })}</summary>
                  {answer.sources.map((source) => (
                    <blockquote key={source.origin + source.text}>
                      {source.text} <small>{source.origin}</small>
                    </blockquote>
                  ))}
                </details>
              )}
            </div>
          </div>
        ))}
        {ask.isPending && (
          <>
            <p className="asked">{ask.variables}</p>
            <p className="quiet">{t("Waiting for the answer…")}</p>
          </>
        )}
        <div ref={end} />
      </div>
      <ErrorNote error={ask.error ?? forget.error} />
      <form onSubmit={submit} className="row">
        <label className="grow">
          <span className="visually-hidden">{t("Your question")}</span>
          <input
            value={text}
            maxLength={4_000}
            placeholder={t("Ask the flow something")}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <button type="submit" className="button primary" disabled={ask.isPending || !text.trim()}>
          {t("Ask")}
        </button>
        {chatId && (
          <button type="button" className="button" onClick={() => forget.mutate(chatId)} disabled={forget.isPending}>
            {t("Start over")}
          </button>
        )}
      </form>
    </section>
  );
}
