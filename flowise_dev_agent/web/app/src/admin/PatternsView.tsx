import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ChangeEvent, useState } from "react";
import { api, dataOf } from "../api/client";
import type { PatternFile, PatternView } from "../api/types";
import { t } from "../i18n";
import { ConfirmButton } from "../ui/ConfirmButton";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, plural } from "../ui/format";
import { save } from "../ui/save";
import { TextInput } from "../ui/TextInput";
import { MOST_SEARCHED, searched } from "../ui/tooLong";
import "./admin.css";

const CATEGORIES = {
  rag: "Answers from documents",
  tool_agent: "Agent with tools",
  conversational: "Conversation",
  custom: "Other",
};
const KEY = ["patterns"];

/** Accepted flows that new sessions can start from. */
export function PatternsView() {
  const queries = useQueryClient();
  const [words, setWords] = useState("");
  const [category, setCategory] = useState<PatternView["category"]>();
  const { data, error, isPending } = useQuery({
    queryKey: [...KEY, searched(words), category],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/patterns", {
          params: { query: { query: searched(words) || undefined, category, limit: 200 } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
  const changed = { onSuccess: () => queries.invalidateQueries({ queryKey: KEY }) };
  const remove = useMutation({
    mutationFn: ({ id: pattern_id }: PatternView) =>
      api.DELETE("/patterns/{pattern_id}", { params: { path: { pattern_id } } }),
    ...changed,
  });
  const importing = useMutation({
    mutationFn: async (file: File) => dataOf(api.POST("/patterns/import", { body: parsed(await file.text()) })),
    ...changed,
  });
  const exporting = useMutation({
    mutationFn: () => dataOf(api.GET("/patterns/export")),
    onSuccess: (file) => save("patterns.json", JSON.stringify(file, null, 2), "application/json"),
  });

  function chosen(event: ChangeEvent<HTMLInputElement>) {
    const file = event.target.files?.[0];
    if (file) importing.mutate(file);
    event.target.value = "";
  }

  return (
    <div className="stack">
      <div className="row apart">
        <h1>{t("Patterns")}</h1>
        <div className="actions">
          <button type="button" className="button" onClick={() => exporting.mutate()} disabled={exporting.isPending}>
            {t("Export all")}
          </button>
          <label className="button file">
            {t("Import…")}
            <input type="file" accept="application/json,.json" onChange={chosen} className="visually-hidden" />
          </label>
        </div>
      </div>
      <p className="quiet">
        {t(
          "An accepted flow is saved with its requirement, without credentials. Sessions with a similar requirement start from it.",
        )}
      </p>
      <div role="status">
        {importing.isPending && <p className="note">{t("Reading the file…")}</p>}
        {importing.data && (
          <div className="note ok">
            <p>{t("{{patterns}} imported.", { patterns: plural(importing.data.imported.length, "pattern") })}</p>
            {importing.data.skipped.map((one) => (
              <p key={one.index}>
                {t("Pattern {{number}} was skipped: {{why}}", { number: one.index + 1, why: one.reason })}
              </p>
            ))}
          </div>
        )}
      </div>
      <ErrorNote error={error ?? remove.error ?? importing.error ?? exporting.error} />
      {(words || category || (data && data.patterns.length > 0)) && (
        <div className="row">
          <label className="field">
            {t("Search")}
            <TextInput
              type="search"
              value={words}
              most={MOST_SEARCHED}
              onChange={(event) => setWords(event.target.value)}
            />
          </label>
          <label className="field">
            {t("Category")}
            <select
              value={category ?? ""}
              onChange={(event) => setCategory((event.target.value || undefined) as typeof category)}
            >
              <option value="">{t("All")}</option>
              {Object.entries(CATEGORIES).map(([value, name]) => (
                <option key={value} value={value}>
                  {t(name)}
                </option>
              ))}
            </select>
          </label>
        </div>
      )}
      {isPending && <p className="quiet">{t("Loading the patterns…")}</p>}
      {data?.patterns.length === 0 && (
        <p className="quiet">
          {words || category ? t("No matching patterns.") : t("No patterns yet. Accept a flow to save one.")}
        </p>
      )}
      <ul className="plain-list stack">
        {data?.patterns.map((pattern) => (
          <li key={pattern.id} className="card stack tight pattern">
            <div className="row apart">
              <h2 className="small-title">{pattern.name || t("Unnamed")}</h2>
              <ConfirmButton
                label={t("Delete…")}
                name={t("Delete the pattern {{name}}", { name: pattern.name })}
                look="danger"
                question={t("Delete the pattern “{{name}}”?", { name: pattern.name })}
                yes={t("Delete the pattern")}
                onYes={() => remove.mutate(pattern)}
              >
                <p>{t("New sessions no longer use it. Flows made from it stay.")}</p>
              </ConfirmButton>
            </div>
            <p>{pattern.requirement.slice(0, 400)}</p>
            <p className="row">
              <span className="badge">{t(CATEGORIES[pattern.category])}</span>
              <span className="badge ok">
                {t("accepted")} {pattern.success_count}×
              </span>
              {pattern.failure_count > 0 && (
                <span className="badge bad">
                  {t("failed")} {pattern.failure_count}×
                </span>
              )}
              <small>
                {plural(pattern.ops, "op")} · {pattern.instance}
                {pattern.last_used_at && ` · ${t("used {{when}}", { when: ago(pattern.last_used_at) })}`}
              </small>
            </p>
            <small>{pattern.node_types.join(", ")}</small>
          </li>
        ))}
      </ul>
    </div>
  );
}

function parsed(text: string): PatternFile {
  try {
    return JSON.parse(text);
  } catch {
    throw Object.assign(new Error(t("The file is not JSON.")), { hint: t("Choose a file made by “Export all”.") });
  }
}
