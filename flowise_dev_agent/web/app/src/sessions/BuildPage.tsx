import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { designSchema, sessionDesign } from "../api/queries";
import { startSession } from "../api/sessions";
import type { DesignForm } from "../api/types";
import { useStores } from "../flow/stores";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { Fields } from "../ui/form/Fields";
import { fieldsOf, filledIn, type Schema, type Values } from "../ui/form/schema";
import { useDraft } from "../ui/useDraft";
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
      {ready && <PartsForm id={params.id ?? ""} schema={schema.data as Schema} design={session.data?.form ?? null} />}
    </div>
  );
}

function PartsForm({ id, schema, design }: { id: string; schema: Schema; design: DesignForm | null }) {
  const [fields] = useState(() => fieldsOf(schema));
  const [values, keep] = useDraft<Values>(`build:${id}`, { ...design });
  const [, go] = useLocation();
  const stores = useStores(undefined);
  // The key changes only with the request: pressing twice starts one session.
  const attempt = useRef({ body: "", key: "" });
  const start = useMutation({
    mutationFn: () => {
      const body = { design: filledIn(fields, values) as unknown as DesignForm };
      const text = JSON.stringify(body);
      if (attempt.current.body !== text) attempt.current = { body: text, key: newKey() };
      return startSession(body, attempt.current.key);
    },
    onSuccess: (view) => {
      keep(null);
      go(`/s/${view.thread_id}`);
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    start.mutate();
  }
  return (
    <form className="card stack" onSubmit={submit}>
      <Fields
        fields={fields}
        values={values}
        onChange={(name, value) => keep({ ...values, [name]: value })}
        lists={{ "document-stores": stores }}
      />
      <div>
        <button type="submit" className="button primary large" disabled={start.isPending}>
          {start.isPending ? t("Starting the session…") : t("Start")}
        </button>
      </div>
      <ErrorNote error={start.error} />
    </form>
  );
}
