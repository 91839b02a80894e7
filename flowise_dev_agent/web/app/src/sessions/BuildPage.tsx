import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { designSchema, sessionDesign } from "../api/queries";
import { startSession } from "../api/sessions";
import type { DesignForm } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { type Answers, answersOf, asked, designOf, type Question, questionsOf, type Row, type Schema } from "./form";
import { newKey } from "./start";
import "./sessions.css";

/** A new flow part by part, empty or as a session built one. It needs no model. */
export function BuildPage({ params }: { params: { id?: string } }) {
  const schema = useQuery(designSchema());
  const session = useQuery({ ...sessionDesign(params.id ?? ""), enabled: Boolean(params.id) });
  const ready = schema.data && (!params.id || session.data || session.error);
  return (
    <div className="stack">
      <Link href="/" className="back">
        {t("← Sessions")}
      </Link>
      <h1>{t("Build step by step")}</h1>
      <p className="quiet">
        {t("Every part of the flow is built as you name it. You review the plan before it is built.")}
      </p>
      {session.data && !session.data.form && (
        <p role="note">{t("This session's flow holds parts that the form does not have: the form is empty.")}</p>
      )}
      <ErrorNote error={schema.error ?? session.error} />
      {ready && <PartsForm schema={schema.data as Schema} design={session.data?.form ?? null} />}
    </div>
  );
}

function PartsForm({ schema, design }: { schema: Schema; design: DesignForm | null }) {
  const questions = questionsOf(schema);
  const [answers, setAnswers] = useState<Answers>(() => ({
    kind: "chat",
    memory: "all",
    ...(design && answersOf(questions, design)),
  }));
  const [, go] = useLocation();
  const attempt = useRef({ body: "", key: "" });
  const set = (name: string, value: string | Row[]) => setAnswers((before) => ({ ...before, [name]: value }));
  const start = useMutation({
    mutationFn: () => {
      const body = { design: designOf(questions, answers) };
      const text = JSON.stringify(body);
      // The key changes only with the request: pressing twice starts one session.
      if (attempt.current.body !== text) attempt.current = { body: text, key: newKey() };
      return startSession(body, attempt.current.key);
    },
    onSuccess: (view) => go(`/s/${view.thread_id}`),
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    start.mutate();
  }
  return (
    <form className="card stack" onSubmit={submit}>
      {asked(questions, String(answers.kind)).map((question) => (
        <Part key={question.name} question={question} answer={answers[question.name] ?? ""} set={set} />
      ))}
      <div>
        <button type="submit" className="button primary large" disabled={start.isPending}>
          {start.isPending ? t("Starting the session…") : t("Start")}
        </button>
      </div>
      <ErrorNote error={start.error} />
    </form>
  );
}

interface PartProps {
  question: Question;
  answer: string | Row[];
  set: (name: string, value: string | Row[]) => void;
}

function Part({ question, answer, set }: PartProps) {
  const { name, label, hint, kind } = question;
  if (kind === "rows") return <Rows question={question} rows={typeof answer === "string" ? [] : answer} set={set} />;
  return (
    <Control
      question={question}
      label={kind === "list" ? t("{{label}} (one a line)", { label }) : label}
      hint={hint}
      value={typeof answer === "string" ? answer : ""}
      onChange={(text) => set(name, text)}
    />
  );
}

function Rows({ question, rows, set }: { question: Question; rows: Row[]; set: PartProps["set"] }) {
  const { name, label, columns } = question;
  const first: Row = Object.fromEntries(columns.map((one) => [one.name, one.choices[0] ?? ""]));
  const change = (at: number, part: Row) =>
    set(
      name,
      rows.map((row, index) => (index === at ? { ...row, ...part } : row)),
    );
  const without = (at: number) => rows.filter((_, index) => index !== at);
  return (
    <fieldset className="parts">
      <legend>{label}</legend>
      {rows.map((row, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity of their own
        <div className="options" key={index}>
          {columns.map((column) => (
            <Control
              key={column.name}
              question={column}
              label={column.label}
              value={row[column.name] ?? ""}
              onChange={(text) => change(index, { [column.name]: text })}
            />
          ))}
          <button type="button" className="button plain" onClick={() => set(name, without(index))}>
            {t("Remove")}
          </button>
        </div>
      ))}
      <button type="button" className="button" onClick={() => set(name, [...rows, first])}>
        {t("Add to {{list}}", { list: label.toLowerCase() })}
      </button>
    </fieldset>
  );
}

interface ControlProps {
  question: Question;
  label: string;
  hint?: string;
  value: string;
  onChange: (text: string) => void;
}

function Control({ question, label, hint, value, onChange }: ControlProps) {
  const id = useId();
  const { kind, choices, maxLength, minimum, maximum } = question;
  const common = {
    id,
    value,
    "aria-describedby": hint ? `${id}-hint` : undefined,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {kind === "choice" && (
        <select {...common}>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      )}
      {(kind === "text" || kind === "list") && <textarea rows={3} maxLength={maxLength} {...common} />}
      {kind === "number" && <input type="number" step="any" min={minimum} max={maximum} {...common} />}
      {kind === "line" && <input maxLength={maxLength} required={question.name === "name"} {...common} />}
      {hint && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}
