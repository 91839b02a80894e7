/** What people have the service remember: a model that plans reads it with each requirement. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import { caller } from "../api/queries";
import type { Memory } from "../api/types";
import { t } from "../i18n";
import { newKey } from "../sessions/start";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { ago } from "../ui/format";
import { MoreButton } from "../ui/MoreButton";
import { tooLong } from "../ui/tooLong";

const KEY = ["notes"];
const SHOWN = 20;
const MOST = 2_000;

/** The notes of all servers; `instances` are their names. */
export function Notes({ instances }: { instances: string[] }) {
  const { data: person } = useQuery(caller());
  const notes = useInfiniteQuery({
    queryKey: KEY,
    queryFn: ({ pageParam: offset, signal }) =>
      dataOf(api.GET("/memories", { params: { query: { kind: "note", limit: SHOWN, offset } }, signal })),
    initialPageParam: 0,
    getNextPageParam: (page) => (page.count === SHOWN ? page.offset + SHOWN : null),
  });
  const found = notes.data?.pages.flatMap((page) => page.items) ?? [];
  const mayWrite = person?.scopes.includes("build") ?? false;
  // At once with all that it has, and last on the page: nothing moves.
  if (!person || notes.isPending) return null;
  return (
    <section className="card stack tight" aria-labelledby="notes-title">
      <h2 id="notes-title">{t("Notes")}</h2>
      <p className="quiet">
        {t(
          "What holds for all your chatbots. A model that plans reads it with each requirement; without a model it is not read.",
        )}
      </p>
      {mayWrite && <NewNote instances={instances} />}
      <ErrorNote error={notes.error} />
      {notes.data && found.length === 0 && <p className="quiet">{t("No notes yet.")}</p>}
      {found.length > 0 && (
        <ul className="plain notes">
          {found.map((note) => (
            <Note key={note.memory_id} note={note} mayWrite={mayWrite} named={instances.length > 1} />
          ))}
        </ul>
      )}
      <MoreButton list={notes}>{t("Older notes")}</MoreButton>
    </section>
  );
}

function NewNote({ instances }: { instances: string[] }) {
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const [instance, setInstance] = useState("");
  // The key changes only with the note: pressing twice keeps one.
  const attempt = useRef({ note: "", key: "" });
  const add = useMutation({
    mutationFn: () => {
      const note = `${instance} ${text}`;
      if (attempt.current.note !== note) attempt.current = { note, key: newKey() };
      return dataOf(
        api.POST("/memories", {
          params: { header: { "idempotency-key": attempt.current.key } },
          body: { text, store_mode: "append", instance: instance || null },
        }),
      );
    },
    onSuccess: () => {
      attempt.current = { note: "", key: "" };
      setText("");
      return queries.invalidateQueries({ queryKey: KEY });
    },
  });
  const long = tooLong(text, MOST);
  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() && !long) add.mutate();
  }
  return (
    <form className="stack tight new-note" onSubmit={submit}>
      <label className="field">
        {t("A new note")}
        <textarea
          rows={2}
          value={text}
          placeholder={t("For example: our bots address customers formally and never name prices.")}
          aria-invalid={long ? true : undefined}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      {long && (
        <p role="alert" className="problem">
          {long}
        </p>
      )}
      <div className="row">
        {instances.length > 1 && (
          <label className="field">
            {t("Flowise server")}
            <select value={instance} onChange={(event) => setInstance(event.target.value)}>
              <option value="">{t("Default")}</option>
              {instances.map((id) => (
                <option key={id}>{id}</option>
              ))}
            </select>
          </label>
        )}
        <button type="submit" className="button" disabled={!text.trim() || long !== "" || add.isPending}>
          {t("Remember")}
        </button>
      </div>
      <ErrorNote error={add.error} />
    </form>
  );
}

function Note({ note, mayWrite, named }: { note: Memory; mayWrite: boolean; named: boolean }) {
  const queries = useQueryClient();
  const forget = useMutation({
    mutationFn: () => api.DELETE("/memories/{memory_id}", { params: { path: { memory_id: note.memory_id } } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  const start = note.text.slice(0, 40);
  return (
    <li className="stack tight">
      <div className="row apart">
        <p className="words grow said">{note.text}</p>
        {mayWrite && (
          <ConfirmButton
            label={t("Delete")}
            name={t("Delete the note “{{text}}”", { text: start })}
            look="plain"
            question={t("Delete this note?")}
            yes={t("Delete the note")}
            busy={forget.isPending}
            onYes={() => forget.mutate()}
          >
            <p>{t("Later sessions no longer know it. Flows that were built with it stay.")}</p>
          </ConfirmButton>
        )}
      </div>
      <small>{[note.created_at && ago(note.created_at), named && note.instance].filter(Boolean).join(" · ")}</small>
      <ErrorNote error={forget.error} />
    </li>
  );
}
