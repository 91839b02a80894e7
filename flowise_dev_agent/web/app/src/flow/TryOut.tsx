import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useContext, useEffect, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import { flowGraph } from "../api/queries";
import type { ChatAnswer, StartForm } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { FileDrop, type StoredFile } from "../ui/files";
import { Fields } from "../ui/form/Fields";
import { fieldsOf, type Schema, type Values } from "../ui/form/schema";
import { duration } from "../ui/format";
import { Markdown } from "../ui/Markdown";
import { TextInput } from "../ui/TextInput";
import { tooLong } from "../ui/tooLong";
import { useDraft } from "../ui/useDraft";
import { HighlightContext, type RunStep, ranFor } from "./highlight";
import { type TryTurn, useTries } from "./tries";

/** Of what is said to a flow. */
const MOST_CHARACTERS = 4_000;

type Body = Omit<NonNullable<Parameters<typeof send>[2]>, "chat_id">;
interface Asked {
  /** The number of its conversation. */
  at: number;
  /** In words, for the list of turns. */
  said: string;
  body: Body;
}

const send = (
  chatflow_id: string,
  instance: string | undefined,
  body: {
    question?: string;
    form?: Record<string, string | number | boolean>;
    human?: { node_id: string; decision: "proceed" | "reject"; feedback: string };
    files?: string[];
    chat_id?: string;
  },
): Promise<ChatAnswer> =>
  dataOf(
    api.POST("/flows/{chatflow_id}/chat", {
      params: { path: { chatflow_id }, query: { instance } },
      body: body as never,
    }),
  );

/** Conversations with a flow or a draft. Flowise keeps them apart from those of visitors. */
export function TryOut({ chatflowId, instance }: { chatflowId: string; instance?: string }) {
  const tries = useTries(`${instance} ${chatflowId}`);
  const { turns, current } = tries;
  const flow = useQuery(flowGraph(chatflowId, instance)).data;
  const chatId = turns.at(-1)?.answer.chat_id;
  const waits = turns.at(-1)?.answer.waits;
  const form = waits ? null : flow?.form;
  const scroll = useRef<HTMLDivElement>(null);
  const { showRun } = useContext(HighlightContext);
  const ask = useMutation({
    mutationFn: ({ body }: Asked) => send(chatflowId, instance, { ...body, ...(chatId && { chat_id: chatId }) }),
    onSuccess: (answer, { at, said }) => tries.add(at, { said, answer }),
  });
  const forget = useMutation({
    mutationFn: async (chat_id: string | undefined) => {
      if (chat_id)
        await api.DELETE("/flows/{chatflow_id}/chat/{chat_id}", {
          params: { path: { chatflow_id: chatflowId, chat_id }, query: { instance } },
        });
    },
    onSuccess: () => {
      tries.remove(current);
      showRun(null);
    },
  });
  const say = (said: string, body: Body) => ask.mutate({ at: current, said, body });
  const busy = ask.isPending && ask.variables.at === current;

  // Each new turn is read from its beginning; a decision with what is asked right above it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: these are what is scrolled to
  useEffect(() => {
    const newest = scroll.current?.querySelector<HTMLElement>(".turns > :last-child");
    if (scroll.current && newest) scroll.current.scrollTop = waits ? scroll.current.scrollHeight : newest.offsetTop;
  }, [turns.length, busy]);

  return (
    <section className="stack tight try-out" aria-label={t("Try it here")}>
      <div className="row conversations">
        {Array.from({ length: tries.count }, (_, at) => (
          <button
            // biome-ignore lint/suspicious/noArrayIndexKey: conversations are known by their number
            key={at}
            type="button"
            className="chip"
            aria-pressed={at === current}
            onClick={() => tries.open(at)}
          >
            {t("Conversation {{number}}", { number: at + 1 })}
          </button>
        ))}
        <button type="button" className="button plain" disabled={turns.length === 0} onClick={tries.begin}>
          {t("New conversation")}
        </button>
        {chatId && (
          <button
            type="button"
            className="button plain push"
            onClick={() => forget.mutate(chatId)}
            disabled={forget.isPending || busy}
          >
            {t("Delete this conversation")}
          </button>
        )}
      </div>
      {/* What the flow asks for is read with its last answer; a field for a question stays in sight below. */}
      <div className="scroll stack tight" ref={scroll}>
        <div className="turns stack tight" role="log" aria-live="polite">
          {turns.map((turn, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: turns are only appended
            <TurnView key={index} turn={turn} run={flow ? ranFor(turn.answer.trace, flow.graph) : []} />
          ))}
          {busy && (
            <>
              <p className="asked">{ask.variables.said}</p>
              <p className="quiet">{t("Waiting for the answer…")}</p>
            </>
          )}
        </div>
        {waits && <Decision key={turns.length} asks={waits} busy={busy} say={say} />}
        {form && <FormFields key={`${current} ${turns.length}`} form={form} busy={busy} say={say} />}
      </div>
      <ErrorNote error={ask.error ?? forget.error} />
      {!waits && !form && (
        <QuestionField
          key={current}
          draft={`ask:${chatflowId}:${current}`}
          busy={busy}
          failed={ask.error ? ask.variables?.said : undefined}
          say={say}
        />
      )}
    </section>
  );
}

type Say = (said: string, body: Body) => void;

/** What was said and what the flow answered. The nodes that ran can be lit in the picture. */
function TurnView({ turn: { said, answer }, run }: { turn: TryTurn; run: RunStep[] }) {
  const { run: shown, showRun } = useContext(HighlightContext);
  // The same answer is the same trace.
  const [own, setOwn] = useState<readonly RunStep[] | null>(null);
  const lit = own !== null && shown === own;
  return (
    <div className="stack tight">
      <p className="asked">{said}</p>
      <div className={lit ? "answered lit" : "answered"}>
        <Markdown text={answer.answer || t("(empty answer)")} />
        <p className="row">
          <small>
            {duration(answer.duration_ms)}
            {answer.used_tools.map((tool) => ` · ${tool.tool}${tool.error ? ` failed: ${tool.error}` : ""}`)}
          </small>
          {run.length > 0 && (
            <button
              type="button"
              className="button small"
              aria-pressed={lit}
              onClick={() => {
                setOwn(lit ? null : run);
                showRun(lit ? null : run);
              }}
            >
              {t("Nodes that ran ({{number}})", { number: run.length })}
            </button>
          )}
        </p>
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
  );
}

interface QuestionProps {
  /** Under which what is typed is kept. */
  draft: string;
  busy: boolean;
  failed: string | undefined;
  say: Say;
}

function QuestionField({ draft, busy, failed, say }: QuestionProps) {
  const [text, setText] = useDraft(draft, "");
  const [files, setFiles] = useState<StoredFile[]>([]);
  const [seen, see] = useState(failed);
  // What could not be sent comes back into the field.
  if (seen !== failed) {
    see(failed);
    if (failed && !text) setText(failed);
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    const question = text.trim();
    if (!question || busy) return;
    say(files.length ? `${question}\n📎 ${files.map((one) => one.name).join(", ")}` : question, {
      question,
      ...(files.length && { files: files.map((one) => one.id) }),
    });
    setText(null);
    setFiles([]);
  }
  return (
    <form onSubmit={submit}>
      <FileDrop files={files} onChange={setFiles}>
        <div className="row nowrap">
          <label className="grow">
            <span className="visually-hidden">{t("Your question")}</span>
            <TextInput
              value={text}
              most={MOST_CHARACTERS}
              placeholder={t("Ask the flow something")}
              onChange={(event) => setText(event.target.value)}
            />
          </label>
          <button type="submit" className="button primary" disabled={busy || !text.trim()}>
            {t("Ask")}
          </button>
        </div>
      </FileDrop>
    </form>
  );
}

/** The flow waits for a person: it goes on, or takes another way. */
function Decision({ asks, busy, say }: { asks: NonNullable<ChatAnswer["waits"]>; busy: boolean; say: Say }) {
  const [feedback, setFeedback] = useDraft(`remark:${asks.node_id}`, "");
  const decide = (decision: "proceed" | "reject", name: string) => {
    if (tooLong(feedback, MOST_CHARACTERS)) return;
    setFeedback(null);
    say([name, feedback.trim()].filter(Boolean).join(": "), {
      human: { node_id: asks.node_id, decision, feedback: feedback.trim() },
    });
  };
  return (
    <fieldset className="stack tight decision" disabled={busy}>
      <legend>{t("“{{step}}” waits for you", { step: asks.label || asks.node_id })}</legend>
      {asks.feedback && (
        <label className="field">
          {t("Your remark (optional)")}
          <TextInput value={feedback} most={MOST_CHARACTERS} onChange={(event) => setFeedback(event.target.value)} />
        </label>
      )}
      <div className="row">
        <button type="button" className="button primary" onClick={() => decide("proceed", t("Proceed"))}>
          {t("Proceed")}
        </button>
        <button type="button" className="button" onClick={() => decide("reject", t("Reject"))}>
          {t("Reject")}
        </button>
      </div>
    </fieldset>
  );
}

/** The form that the flow starts with. */
function FormFields({ form, busy, say }: { form: StartForm; busy: boolean; say: Say }) {
  const [fields] = useState(() =>
    fieldsOf(schemaOf(form)).map((one) => (one.kind === "text" ? { ...one, kind: "line" as const } : one)),
  );
  const [values, setValues] = useState<Values>(() =>
    Object.fromEntries(fields.map((one) => [one.name, one.kind === "switch" ? false : (one.choices[0]?.value ?? "")])),
  );
  function submit(event: FormEvent) {
    event.preventDefault();
    say(fields.map(({ name, label }) => `${label}: ${values[name]}`).join("\n"), { form: values as Body["form"] });
  }
  return (
    <form className="stack tight start-form" onSubmit={submit}>
      {form.title && <strong>{form.title}</strong>}
      {form.description && <p>{form.description}</p>}
      <Fields
        fields={fields}
        values={values}
        onChange={(name, value) => setValues((before) => ({ ...before, [name]: value }))}
      />
      <div>
        <button type="submit" className="button primary" disabled={busy}>
          {t("Send the form")}
        </button>
      </div>
    </form>
  );
}

const schemaOf = ({ fields }: StartForm): Schema => ({
  required: fields.map((one) => one.name),
  properties: Object.fromEntries(
    fields.map(({ name, label, type, options }): [string, Schema] => [
      name,
      {
        title: label,
        type: type === "options" ? "string" : type,
        maxLength: MOST_CHARACTERS,
        ...(type === "options" && { enum: options ?? [] }),
      },
    ]),
  ),
});
