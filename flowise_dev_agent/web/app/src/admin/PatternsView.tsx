import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ChangeEvent, useState } from "react";
import { call } from "../api/client";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, plural } from "../ui/format";
import { save } from "./save";
import type { PatternView } from "./types";
import "./admin.css";

const CATEGORIES = {
  rag: "Answers from documents",
  tool_agent: "Agent with tools",
  conversational: "Conversation",
  custom: "Other",
};
const KEY = ["patterns"];

/** The accepted flows that new ones may start from. */
export function PatternsView() {
  const queries = useQueryClient();
  const [words, setWords] = useState("");
  const [category, setCategory] = useState("");
  const { data, error, isPending } = useQuery({
    queryKey: [...KEY, words, category],
    queryFn: ({ signal }) =>
      call<{ patterns: PatternView[] }>("/patterns", { query: { q: words, category, limit: 200 }, signal }),
    placeholderData: keepPreviousData,
  });
  const changed = { onSuccess: () => queries.invalidateQueries({ queryKey: KEY }) };
  const remove = useMutation({
    mutationFn: (pattern: PatternView) => call(`/patterns/${pattern.id}`, { method: "DELETE" }),
    ...changed,
  });
  const bringIn = useMutation({
    mutationFn: async (file: File) =>
      call<{ imported: number[]; skipped: { index: number; reason: string }[] }>("/patterns/import", {
        method: "POST",
        body: parsed(await file.text()),
      }),
    ...changed,
  });
  const takeAlong = useMutation({
    mutationFn: () => call("/patterns/export"),
    onSuccess: (file) => save("patterns.json", file),
  });

  function chosen(event: ChangeEvent<HTMLInputElement>) {
    const file = event.target.files?.[0];
    if (file) bringIn.mutate(file);
    event.target.value = "";
  }

  return (
    <div className="stack">
      <div className="row apart">
        <h1>Patterns</h1>
        <div className="actions">
          <button type="button" className="button" onClick={() => takeAlong.mutate()} disabled={takeAlong.isPending}>
            Export all
          </button>
          <label className="button file">
            Import…
            <input type="file" accept="application/json,.json" onChange={chosen} className="visually-hidden" />
          </label>
        </div>
      </div>
      <p className="quiet">
        A flow that was accepted is remembered with its requirement, without credentials. A similar wish starts from it.
      </p>
      <div role="status">
        {bringIn.isPending && <p className="note">Reading the file…</p>}
        {bringIn.data && (
          <div className="note ok">
            <p>{plural(bringIn.data.imported.length, "pattern")} imported.</p>
            {bringIn.data.skipped.map((one) => (
              <p key={one.index}>
                Number {one.index + 1} was left out: {one.reason}
              </p>
            ))}
          </div>
        )}
      </div>
      <ErrorNote error={error ?? remove.error ?? bringIn.error ?? takeAlong.error} />
      <div className="row">
        <label className="field">
          Search
          <input type="search" value={words} maxLength={200} onChange={(event) => setWords(event.target.value)} />
        </label>
        <label className="field">
          Kind
          <select value={category} onChange={(event) => setCategory(event.target.value)}>
            <option value="">All</option>
            {Object.entries(CATEGORIES).map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {isPending && <p className="quiet">Reading the patterns…</p>}
      {data?.patterns.length === 0 && (
        <p className="quiet">
          {words || category ? "No pattern fits." : "There is no pattern yet: accept a flow, and it becomes one."}
        </p>
      )}
      <ul className="plain-list stack">
        {data?.patterns.map((pattern) => (
          <li key={pattern.id} className="card stack tight">
            <div className="row apart">
              <h2 className="small-title">{pattern.name || "Without a name"}</h2>
              <ConfirmButton
                label="Delete…"
                name={`Delete the pattern ${pattern.name}`}
                look="danger"
                question={`Delete the pattern “${pattern.name}”?`}
                yes="Delete the pattern"
                onYes={() => remove.mutate(pattern)}
              >
                <p>It will not be offered to new sessions any more. Flows that were made from it stay.</p>
              </ConfirmButton>
            </div>
            <p>{pattern.requirement.slice(0, 400)}</p>
            <p className="row">
              <span className="badge">{CATEGORIES[pattern.category]}</span>
              <span className="badge ok">accepted {pattern.success_count}×</span>
              {pattern.failure_count > 0 && <span className="badge bad">failed {pattern.failure_count}×</span>}
              <small>
                {plural(pattern.ops, "op")} · {pattern.instance}
                {pattern.last_used_at && ` · used ${ago(pattern.last_used_at)}`}
              </small>
            </p>
            <small>{pattern.node_types.join(", ")}</small>
          </li>
        ))}
      </ul>
    </div>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw Object.assign(new Error("The file is not JSON."), { hint: "Choose a file that “Export all” made." });
  }
}
