/** The list of changes to a flow that is built by hand: in words, each can be taken out, all can be built and tested. */
import { useMutation } from "@tanstack/react-query";
import { useContext, useState } from "react";
import type { FlowPreview } from "../api/types";
import { t } from "../i18n";
import { findingText } from "../i18n/texts";
import { EditBar } from "../session/EditBar";
import { HandEdit } from "../session/HandEdits";
import { ErrorNote } from "../ui/ErrorNote";
import { EditingContext } from "./edits";
import { useHandSession } from "./handSession";

/** Moves that are told as one. */
const MANY = 4;

interface Props {
  /** Null for a new flow. */
  chatflowId: string | null;
  instance: string | undefined;
  name: string;
  /** As of these changes, or of those before. */
  drawn: FlowPreview | undefined;
}

export function ChangeList({ chatflowId, instance, name, drawn }: Props) {
  const editing = useContext(EditingContext);
  const [title, setTitle] = useState(t("New flow"));
  const named = chatflowId ? t("Changed by hand: {{flow}}", { flow: name }).slice(0, 120) : title.trim();
  const start = useHandSession(chatflowId, instance);
  const build = useMutation({ mutationFn: () => start({ session_name: named }) });
  if (!editing) return null;
  const { edits } = editing;
  const told = drawn?.edits.length === edits.length ? drawn.edits : [];
  const wrong = (index: number) => drawn?.findings.find((one) => one.op_index === index);
  const broken = edits.some((_, index) => told.length > 0 && wrong(index)?.severity === "error");
  // Tidying up is one change to a person.
  const moved = edits.filter((one) => one.op_type === "SetPosition");
  const touched = edits.length > 0 || Boolean(editing.undo ?? editing.redo);
  if (!touched && chatflowId)
    return (
      <p className="quiet">
        {t(
          "Click a node to change it, drag from a point to connect it, or press + to add one. Nothing is written yet.",
        )}
      </p>
    );
  return (
    <section className="changes stack tight" aria-labelledby="changes-title">
      <h2 id="changes-title" className="small-title">
        {t("Your changes")}
      </h2>
      {drawn?.stale && (
        <div className="note warn" role="status">
          <p>{t("Somebody changed the flow in Flowise meanwhile. Your changes are shown on it as it is now.")}</p>
          <div className="row">
            <button type="button" className="button small" onClick={() => editing.rebase(drawn.sha256)}>
              {t("Keep my changes on it")}
            </button>
            <button type="button" className="button small" onClick={editing.clear}>
              {t("Discard my changes")}
            </button>
            <a className="button small" href={`#/history/${chatflowId}`}>
              {t("Compare the versions")}
            </a>
          </div>
        </div>
      )}
      {edits.length > 0 && (
        <ol className="change-steps" aria-label={t("Your changes")}>
          {moved.length >= MANY && (
            <li>
              <span className="change-words">{t("Moved: {{number}} nodes", { number: moved.length })}</span>
              <button
                type="button"
                className="button plain small"
                aria-label={t("Take out all moves")}
                onClick={() => editing.takeOut(...moved)}
              >
                ✕
              </button>
            </li>
          )}
          {edits.map((edit, index) => {
            if (moved.length >= MANY && edit.op_type === "SetPosition") return null;
            const view = told[index];
            const finding = told.length > 0 ? wrong(index) : undefined;
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: edits have no identity of their own
              <li key={index}>
                <span className="change-words">
                  {view ? <HandEdit edit={view} /> : "…"}
                  {finding && <span className="problem">{findingText(finding)}</span>}
                </span>
                <button
                  type="button"
                  className="button plain small"
                  aria-label={t("Take out change {{number}}", { number: index + 1 })}
                  onClick={() => editing.takeOut(edit)}
                >
                  ✕
                </button>
              </li>
            );
          })}
        </ol>
      )}
      {touched && <EditBar />}
      {!chatflowId && (
        <label className="field">
          {t("Name of the new flow")}
          <input value={title} maxLength={120} onChange={({ target }) => setTitle(target.value)} />
        </label>
      )}
      <div>
        <button
          type="button"
          className="button primary"
          disabled={build.isPending || edits.length === 0 || broken || drawn?.stale || (!chatflowId && !title.trim())}
          onClick={() => build.mutate()}
        >
          {build.isPending ? t("Starting…") : t("Build and test")}
        </button>{" "}
        <small>{t("It is built as a draft and tested; you decide then whether it goes live.")}</small>
      </div>
      <ErrorNote error={build.error} />
    </section>
  );
}
