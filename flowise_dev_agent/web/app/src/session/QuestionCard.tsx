import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Problem } from "../api/client";
import { caller } from "../api/queries";
import { answerSession } from "../api/sessions";
import type { Answer, Interrupt, SessionEvent, SessionView } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { focusIsFree } from "../ui/keepFocus";
import { forgetDrafts } from "../ui/useDraft";
import { ClarificationForm } from "./questions/Clarification";
import { CredentialCheckForm } from "./questions/CredentialCheck";
import { type FormProps, Refusal } from "./questions/controls";
import { PatchReviewForm } from "./questions/PatchReview";
import { PlanApprovalForm } from "./questions/PlanApproval";
import { ResultReviewForm } from "./questions/ResultReview";
import { TargetPicker } from "./questions/TargetPicker";
import { questionTitle } from "./questionTitles";
import { answerTo } from "./timeline";
import { sessionKey } from "./useSession";

function Form({ question, ...props }: FormProps<Interrupt>) {
  switch (question.type) {
    case "clarification":
      return <ClarificationForm question={question} {...props} />;
    case "select_target":
      return <TargetPicker question={question} {...props} />;
    case "plan_approval":
      return <PlanApprovalForm question={question} {...props} />;
    case "credential_check":
      return <CredentialCheckForm question={question} {...props} />;
    case "patch_review":
      return <PatchReviewForm question={question} {...props} />;
    case "result_review":
      return <ResultReviewForm question={question} {...props} />;
  }
}

/** Questions by which something gets written. */
const DECISIONS: Interrupt["type"][] = ["plan_approval", "patch_review", "result_review"];

interface Props {
  session: SessionView;
  question: Interrupt;
  /** Called when an answer is sent, and with false when it was refused. */
  onMine: (interruptId: string, mine: boolean) => void;
}

/** The open question of a session, with the form of its type. */
export function QuestionCard({ session, question, onMine }: Props) {
  const queries = useQueryClient();
  const heading = useRef<HTMLHeadingElement>(null);
  const id = session.thread_id;
  // The verdict says the same, shorter.
  const { data: person } = useQuery(caller());
  const mayDecide = !person || !DECISIONS.includes(question.type) || person.scopes.includes("approve");
  const told = question.type === "result_review" && Boolean(question.data.verdict?.headline);

  const needsModel = question.texts?.message?.code === "interrupt.words_need_model";

  // The answered form is gone and took the focus with it, or left it on what happens meanwhile; move the focus here.
  useEffect(() => {
    if (focusIsFree() || document.activeElement?.closest(".now")) heading.current?.focus({ preventScroll: true });
    return heading.current ? keepInSight(heading.current) : undefined;
  }, []);

  const answer = useMutation({
    mutationFn: ({ given, files }: { given: Answer; files: string[] }) => answerSession(id, question.id, given, files),
    onMutate: () => onMine(question.id, true),
    onSuccess: (view) => {
      forgetDrafts(question.id);
      queries.setQueryData(sessionKey(id), view);
    },
    onError: (error) => {
      onMine(question.id, false);
      // Someone else answered first: the session shows the result.
      if (error instanceof Problem && error.status === 409) {
        void queries.invalidateQueries({ queryKey: sessionKey(id) });
      }
    },
  });

  return (
    <section className="question" aria-labelledby="question-title">
      <div className="question-head">
        <h2 id="question-title" ref={heading} tabIndex={-1}>
          {needsModel ? t("This needs a model") : t(questionTitle(question.type, question.reason, question.options))}
        </h2>
        {!told && <p className="message-lines">{worded(question, "message")}</p>}
        {!mayDecide && (
          <p className="note warn">
            {t("You can ask for changes here. Approving needs somebody with the right “approve”.")}
          </p>
        )}
      </div>
      <Refusal value={answer.error}>
        <Form
          question={question}
          session={session}
          busy={answer.isPending}
          send={(given, files = []) => answer.mutate({ given, files })}
        />
      </Refusal>
    </section>
  );
}

/** What a person does to read on. */
const MOVES = ["wheel", "touchmove", "pointerdown", "keydown", "focusin"] as const;

/** Keep it at the top while what is above it still comes, until the person moves on. */
function keepInSight(element: HTMLElement): () => void {
  const show = () => {
    // With what is to be known before it is answered.
    let top: Element = element;
    for (
      let one = element.closest(".question")?.previousElementSibling;
      one?.matches(".note");
      one = one.previousElementSibling
    )
      top = one;
    top.scrollIntoView?.({ block: "start" });
  };
  const talk = element.closest(".talk");
  show();
  const watch = new MutationObserver(show);
  if (talk) watch.observe(talk, { childList: true, subtree: true });
  const stop = () => {
    watch.disconnect();
    for (const move of MOVES) talk?.removeEventListener(move, stop);
  };
  for (const move of MOVES) talk?.addEventListener(move, stop, { passive: true });
  return stop;
}

/** Detects that the open question was answered by someone else, or in another tab. */
export function useElsewhere(open: string | null, events: readonly SessionEvent[]) {
  const mine = useRef(new Set<string>());
  const shown = useRef<string | null>(null);
  const [lost, setLost] = useState<string | null>(null);

  useEffect(() => {
    const before = shown.current;
    shown.current = open;
    if (before && before !== open && !mine.current.has(before)) setLost(before);
  }, [open]);

  return {
    /** How the question was answered: "" until that is known, null when none was answered elsewhere. */
    notice: lost === null ? null : (answerTo(events, lost) ?? ""),
    close: () => setLost(null),
    mark: (interruptId: string, isMine: boolean) => {
      if (isMine) mine.current.add(interruptId);
      else mine.current.delete(interruptId);
    },
  };
}

export function Elsewhere({ notice, onClose }: { notice: string | null; onClose: () => void }) {
  if (notice === null) return null;
  return (
    <div role="status" className="note warn">
      <p>
        {t("This question was answered elsewhere")}
        {notice ? <strong>: {notice}.</strong> : "."} {t("The session continues with that answer.")}
      </p>
      <div>
        <button type="button" className="button plain" onClick={onClose}>
          {t("Dismiss")}
        </button>
      </div>
    </div>
  );
}
