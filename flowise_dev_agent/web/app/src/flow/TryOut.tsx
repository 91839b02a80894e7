import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { call } from "../api/client";
import { ErrorNote } from "../ui/ErrorNote";
import { duration } from "../ui/format";
import { Markdown } from "../ui/Markdown";
import type { ChatAnswer } from "./types";

interface Turn {
  question: string;
  answer: ChatAnswer;
}

/** A box to talk to a flow, a draft too. Its conversations are marked as tries in Flowise and are of no visitor. */
export function TryOut({ chatflowId, instance }: { chatflowId: string; instance?: string }) {
  const path = `/flows/${encodeURIComponent(chatflowId)}/chat`;
  const [turns, setTurns] = useState<Turn[]>([]);
  const [text, setText] = useState("");
  const chatId = turns.at(-1)?.answer.chat_id;
  const end = useRef<HTMLDivElement>(null);
  const ask = useMutation({
    mutationFn: (question: string) =>
      call<ChatAnswer>(path, {
        method: "POST",
        body: { question, ...(chatId && { chat_id: chatId }) },
        query: { instance },
      }),
    onSuccess: (answer, question) => setTurns((before) => [...before, { question, answer }]),
    onError: (_, question) => setText(question),
  });
  const forget = useMutation({
    mutationFn: () => call(`${path}/${chatId}`, { method: "DELETE", query: { instance } }),
    onSuccess: () => setTurns([]),
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: each new turn is brought into sight
  useEffect(() => {
    // In braces: a promise, which newer browsers return, is no clean-up.
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
    <section className="stack tight try-out" aria-label="Try it here">
      <div className="turns stack tight" role="log" aria-live="polite">
        {turns.map(({ question, answer }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: turns are only appended
          <div key={index} className="stack tight">
            <p className="asked">{question}</p>
            <div className="answered">
              <Markdown text={answer.answer || "(an empty answer)"} />
              <small>
                {duration(answer.duration_ms)}
                {answer.used_tools.map((tool) => ` · ${tool.tool}${tool.error ? ` failed: ${tool.error}` : ""}`)}
              </small>
              {answer.sources.length > 0 && (
                <details>
                  <summary>What it found ({answer.sources.length})</summary>
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
            <p className="quiet">The flow is answering…</p>
          </>
        )}
        <div ref={end} />
      </div>
      <ErrorNote error={ask.error ?? forget.error} />
      <form onSubmit={submit} className="row">
        <label className="grow">
          <span className="visually-hidden">Your question to the flow</span>
          <input
            value={text}
            maxLength={4_000}
            placeholder="Ask the flow something"
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <button type="submit" className="button primary" disabled={ask.isPending || !text.trim()}>
          Ask
        </button>
        {turns.length > 0 && (
          <button type="button" className="button" onClick={() => forget.mutate()} disabled={forget.isPending}>
            Start over
          </button>
        )}
      </form>
    </section>
  );
}
