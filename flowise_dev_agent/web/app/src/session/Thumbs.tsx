import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { api, dataOf } from "../api/client";
import type { Trial } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { TextInput } from "../ui/TextInput";
import { sessionKey } from "./useSession";

interface Props {
  session: string;
  /** Of the test in the session's result, from 1. */
  number: number;
  question: string;
  mark: Trial["mark"];
}

/** The person's own judgement of an answer: it counts before all others, and goes into the flow's test set. */
export function Thumbs({ session, number, question, mark }: Props) {
  const queries = useQueryClient();
  const id = useId();
  const [correcting, setCorrecting] = useState(false);
  const judge = useMutation({
    mutationFn: ({ good, text }: { good: boolean; text?: string }) =>
      dataOf(
        api.POST("/sessions/{session_id}/tests/{number}/verdict", {
          params: { path: { session_id: session, number } },
          body: { good, contains: text ? [text] : [], excludes: [] },
        }),
      ),
    onSuccess: () => {
      setCorrecting(false);
      return queries.invalidateQueries({ queryKey: sessionKey(session) });
    },
  });
  const judgements: [boolean, string, string][] = [
    [true, t("Good answer"), t("Good answer: {{question}}", { question })],
    [false, t("Wrong answer"), t("Wrong answer: {{question}}", { question })],
  ];
  return (
    <div className="stack tight">
      <div className="row">
        {judgements.map(([good, label, name]) => (
          <button
            key={label}
            type="button"
            className="chip"
            aria-label={name}
            aria-pressed={mark?.good === good}
            disabled={judge.isPending}
            onClick={() => (good ? judge.mutate({ good }) : setCorrecting(true))}
          >
            {label}
          </button>
        ))}
        <small role="status">{mark && t("Judged by you")}</small>
      </div>
      {correcting && (
        <form
          className="stack tight"
          onSubmit={(event: FormEvent<HTMLFormElement>) => {
            event.preventDefault();
            event.stopPropagation();
            const text = String(new FormData(event.currentTarget).get("text") ?? "").trim();
            judge.mutate({ good: false, text });
          }}
        >
          <label className="field" htmlFor={id}>
            {t("What should the answer have said? (optional)")}
            <TextInput id={id} name="text" most={200} autoFocus />
            <small>{t("These words are looked for at each later change.")}</small>
          </label>
          <div className="row">
            <button type="submit" className="button" disabled={judge.isPending}>
              {t("It is wrong")}
            </button>
            <button type="button" className="button plain" onClick={() => setCorrecting(false)}>
              {t("Cancel")}
            </button>
          </div>
        </form>
      )}
      <ErrorNote error={judge.error} />
    </div>
  );
}
