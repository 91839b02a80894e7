import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { askFlow, type ChatAnswer } from "../api/flows";
import { ErrorNote } from "../ui/ErrorNote";
import { duration } from "../ui/format";
import { Markdown } from "../ui/Markdown";

interface Turn {
  question: string;
  answer: ChatAnswer;
}

interface Props {
  chatflowId: string;
  instance: string;
  draft: boolean;
}

/** A conversation with the flow, in a chat of its own that no visitor sees. */
export function TryIt({ chatflowId, instance, draft }: Props) {
  const [turns, setTurns] = useState<Turn[]>([]);
  const [question, setQuestion] = useState("");
  const ask = useMutation({
    mutationFn: (text: string) => askFlow(chatflowId, instance, text, turns.at(-1)?.answer.chat_id),
    onSuccess: (answer, text) => {
      setTurns((before) => [...before, { question: text, answer }]);
      setQuestion("");
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (question.trim()) ask.mutate(question.trim());
  }
  return (
    <div className="stack">
      <p className="quiet">
        You talk to {draft ? "the draft" : "the flow as it is on the server"}. What you write here is marked as a trial
        in Flowise.
      </p>
      <ol className="plain stack tight chat" aria-live="polite">
        {turns.map((turn, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: turns are only appended
          <li key={index} className="stack tight">
            <p className="mine words">{turn.question}</p>
            <div className="theirs">
              <Markdown text={turn.answer.answer} />
              <small>
                {duration(turn.answer.duration_ms)}
                {turn.answer.used_tools.length > 0 &&
                  ` · used ${turn.answer.used_tools.map((one) => one.tool).join(", ")}`}
              </small>
            </div>
          </li>
        ))}
      </ol>
      {ask.isPending && (
        <p role="status" className="quiet">
          The flow is answering…
        </p>
      )}
      <ErrorNote error={ask.error} />
      <form className="row" onSubmit={submit}>
        <input
          className="grow"
          aria-label="Your message to the flow"
          placeholder="Ask it something"
          maxLength={4_000}
          value={question}
          onChange={(event) => setQuestion(event.target.value)}
        />
        <button type="submit" className="button primary" disabled={ask.isPending || !question.trim()}>
          Send
        </button>
      </form>
    </div>
  );
}
