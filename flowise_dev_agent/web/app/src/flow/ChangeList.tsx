/** The list of changes to a flow that is built by hand: in words, each can be taken out, all can be built and tested. */
import { useContext, useEffect, useRef } from "react";
import type { Finding, FlowPreview } from "../api/types";
import { t } from "../i18n";
import { findingText } from "../i18n/texts";
import { EditBar } from "../session/EditBar";
import { HandEdit } from "../session/HandEdits";
import { FindingList } from "../session/questions/controls";
import { ErrorNote } from "../ui/ErrorNote";
import { plural } from "../ui/format";
import { type Editing, EditingContext } from "./edits";
import type { HandBuild } from "./handSession";

/** Moves that are told as one. */
const MANY = 4;
/** More of what is missing than this is folded. */
const FEW = 3;

/** What keeps a flow from working comes first, what may stay as it is last. */
const rank = ({ severity, code }: Finding): number => (severity === "error" ? 0 : code === "VERSION_DRIFT" ? 2 : 1);

interface Props {
  /** Null for a new flow. */
  chatflowId: string | null;
  hand: HandBuild;
  /** As of these changes, or of those before. */
  drawn: FlowPreview | undefined;
  /** Show a node, where what is missing can be filled in. */
  onShow: (node: string) => void;
}

export function ChangeList({ chatflowId, hand, drawn, onShow }: Props) {
  const editing = useContext(EditingContext);
  const { title, setTitle, missing } = hand;
  const list = useRef<HTMLOListElement>(null);
  const number = editing?.edits.length ?? 0;
  // The newest is in sight.
  // biome-ignore lint/correctness/useExhaustiveDependencies: as soon as there is another one
  useEffect(() => {
    if (list.current) list.current.scrollTop = list.current.scrollHeight;
  }, [number, drawn]);
  if (!editing) return null;
  const { edits } = editing;
  const told = drawn?.edits.length === edits.length ? drawn.edits : [];
  const wrong = (index: number) => drawn?.findings.find((one) => one.op_index === index);
  // Tidying up is one change to a person.
  const moved = edits.filter((one) => one.op_type === "SetPosition");
  const touched = edits.length > 0 || Boolean(editing.undo ?? editing.redo);
  const known = (drawn?.findings.filter((one) => one.origin === "base") ?? []).toSorted((a, b) => rank(a) - rank(b));
  const before = known.length > 0 && (
    <details open={!touched}>
      <summary>{t("To look at in this flow")}</summary>
      <FindingList label={t("What is wrong with this flow")} findings={known} />
    </details>
  );
  if (!touched && chatflowId)
    return (
      <>
        <p className="quiet">
          {t(
            "Click a node to change it, drag from a point to connect it, or press + to add one. Nothing is written yet.",
          )}
        </p>
        {before}
      </>
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
        <ol ref={list} className="change-steps" aria-label={t("Your changes")}>
          {moved.length >= MANY && (
            <li>
              <span className="change-words">{plural(moved.length, "node moved")}</span>
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
      {missing.length > 0 && (
        <details className="note bad" open={missing.length <= FEW}>
          <summary>{t("Before it can be built: {{number}} to mend", { number: missing.length })}</summary>
          <ul className="plain stack tight" aria-label={t("What is missing")}>
            {missing.map((one) => (
              <li key={`${one.where} ${one.code} ${one.field}`}>
                {findingText(one)}{" "}
                <button type="button" className="button small" onClick={() => onShow(one.where)}>
                  {t("Show")}
                </button>
              </li>
            ))}
          </ul>
        </details>
      )}
      <div>
        <BuildButton hand={hand} />{" "}
        <small>{t("It is built as a draft and tested; you decide then whether it goes live.")}</small>
      </div>
      <ErrorNote error={hand.error} />
      {before}
    </section>
  );
}

function BuildButton({ hand: { build, isPending, ready } }: { hand: HandBuild }) {
  return (
    <button type="button" className="button primary" disabled={!ready} onClick={() => build()}>
      {isPending ? t("Starting…") : t("Build and test")}
    </button>
  );
}

interface ThumbBarProps {
  editing: Editing;
  hand: HandBuild;
  onAdd: () => void;
}

/** What a thumb reaches on a phone, below the picture. */
export function ThumbBar({ editing: { undo, redo }, hand, onAdd }: ThumbBarProps) {
  const sign = (name: string, text: string, act: (() => void) | null) => (
    <button type="button" className="button" aria-label={name} disabled={!act} onClick={() => act?.()}>
      {text}
    </button>
  );
  return (
    <fieldset className="thumb-bar" aria-label={t("Your changes")}>
      {sign(t("Undo"), "↶", undo)}
      {sign(t("Redo"), "↷", redo)}
      {sign(t("Add a node…"), "+", onAdd)}
      <BuildButton hand={hand} />
    </fieldset>
  );
}
