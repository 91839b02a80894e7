import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ComponentType, useEffect, useRef } from "react";
import { Problem } from "../api/client";
import { answerSession } from "../api/sessions";
import type { Answer, SessionView } from "../api/types";
import { ErrorNote } from "../ui/ErrorNote";
import { Choices } from "./questions/Choices";
import { ClarificationForm } from "./questions/Clarification";
import { CredentialCheckForm } from "./questions/CredentialCheck";
import { PatchReviewForm } from "./questions/PatchReview";
import { PlanApprovalForm } from "./questions/PlanApproval";
import { ResultReviewForm } from "./questions/ResultReview";
import type { FormProps, Question } from "./questions/shapes";
import { TargetPicker } from "./questions/TargetPicker";
import { sessionKey } from "./useSession";

interface Kind {
  title: string;
  // biome-ignore lint/suspicious/noExplicitAny: each form knows the data of its own type
  form: ComponentType<FormProps<any>>;
}

const KINDS: Record<string, Kind> = {
  clarification: { title: "A few questions first", form: ClarificationForm },
  select_target: { title: "Which flow?", form: TargetPicker },
  plan_approval: { title: "The plan", form: PlanApprovalForm },
  credential_check: { title: "Credentials", form: CredentialCheckForm },
  patch_review: { title: "Before the change is written", form: PatchReviewForm },
  result_review: { title: "The result", form: ResultReviewForm },
};
/** What a question is about when it has another reason than most of its type. */
const BY_REASON: Record<string, string> = {
  declined: "This cannot be built",
  stale_base: "The flow was changed meanwhile",
  budget: "The budget is spent",
  repeated_finding: "The change does not work out",
};
/** A type that this page does not know yet can still be answered by its actions. */
const OTHER: Kind = {
  title: "A question",
  form: ({ question, busy, send }) => (
    <Choices options={question.options} busy={busy} onChoose={(action) => send({ action })} />
  ),
};

interface Props {
  session: SessionView;
  question: Question;
  /** Called as an answer goes out, and with false when another one was first. */
  onMine: (interruptId: string, mine: boolean) => void;
}

/** The open question of a session, with the form of its type. */
export function QuestionCard({ session, question, onMine }: Props) {
  const queries = useQueryClient();
  const heading = useRef<HTMLHeadingElement>(null);
  const id = session.thread_id;
  const { title, form: Form } = KINDS[question.type] ?? OTHER;

  // The form that was just answered is gone and the focus with it: it goes on here.
  useEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, []);

  const answer = useMutation({
    mutationFn: (given: Answer) => answerSession(id, question.id, given),
    onMutate: () => onMine(question.id, true),
    onSuccess: (view) => queries.setQueryData(sessionKey(id), view),
    onError: (error) => {
      onMine(question.id, false);
      // Someone else was first: the session shows what became of it.
      if (error instanceof Problem && error.status === 409) {
        void queries.invalidateQueries({ queryKey: sessionKey(id) });
      }
    },
  });

  return (
    <section className="card question stack" aria-labelledby="question-title">
      <div>
        <h2 id="question-title" ref={heading} tabIndex={-1}>
          {BY_REASON[question.reason] ?? title}
        </h2>
        <p>{question.message}</p>
      </div>
      <Form question={question} session={session} busy={answer.isPending} send={answer.mutate} />
      <ErrorNote error={answer.error} />
    </section>
  );
}
