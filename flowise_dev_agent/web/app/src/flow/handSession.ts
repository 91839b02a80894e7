/** A session of the changes that a person has made by hand, and of the words that they add to them. */
import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useLocation } from "wouter";
import { Problem } from "../api/client";
import { answerSession, getSession, startSession } from "../api/sessions";
import type { FlowPreview, SessionView, StartSession } from "../api/types";
import { t } from "../i18n";
import { newKey } from "../sessions/start";
import { type Editing, filesOf, opsOf } from "./edits";
import { blocking } from "./mending";

/** Starts it and shows it; then the changes are the session's. */
export function useHandSession(chatflowId: string | null, instance: string | undefined, editing: Editing | null) {
  const [, go] = useLocation();
  const attempt = useRef({ sent: "", key: "" });
  return async (more: Partial<StartSession>): Promise<void> => {
    const edits = editing?.edits ?? [];
    const body = {
      ops: opsOf(edits),
      attachments: filesOf(edits),
      ...(chatflowId && { target: chatflowId, base_sha256: editing?.base || null }),
      ...(instance && { flowise_instance_id: instance }),
      ...more,
    };
    // Pressed twice, it is one session.
    const sent = JSON.stringify(body);
    if (attempt.current.sent !== sent) attempt.current = { sent, key: newKey() };
    const session = await approved(await startSession(body, attempt.current.key));
    editing?.clear();
    go(`/s/${session.thread_id}`);
  };
}

export type HandBuild = ReturnType<typeof useHandBuild>;

/** "Build and test" of the changes to a flow, or to a new one, which gets a name before. */
export function useHandBuild(
  chatflowId: string | null,
  instance: string | undefined,
  name: string,
  editing: Editing,
  drawn: FlowPreview | undefined,
) {
  const [title, setTitle] = useState(t("New flow"));
  const named = chatflowId ? t("Changed by hand: {{flow}}", { flow: name }).slice(0, 120) : title.trim();
  const start = useHandSession(chatflowId, instance, editing);
  const { mutate, isPending, error } = useMutation({ mutationFn: () => start({ session_name: named }) });
  const { edits } = editing;
  const missing = edits.length > 0 ? blocking(drawn) : [];
  const broken =
    drawn?.edits.length === edits.length &&
    drawn.findings.some(
      (one) => typeof one.op_index === "number" && one.op_index < edits.length && one.severity === "error",
    );
  const ready = !isPending && edits.length > 0 && !broken && missing.length === 0 && !drawn?.stale && named !== "";
  return { title, setTitle, missing, build: mutate, isPending, error, ready };
}

/** The person has made the changes themselves, so that the plan of them needs no other yes. */
async function approved(started: SessionView): Promise<SessionView> {
  let session = started;
  for (let tries = 0; session.status === "in_progress" && tries < 40; tries += 1) {
    await new Promise((wait) => setTimeout(wait, 250));
    session = await getSession(session.thread_id);
  }
  const { interrupt } = session;
  if (interrupt?.type !== "plan_approval" || interrupt.data.contract.declined) return session;
  try {
    return await answerSession(session.thread_id, interrupt.id, { action: "approve" }, []);
  } catch (error) {
    // Somebody else has to say yes: the session asks them.
    if (error instanceof Problem) return session;
    throw error;
  }
}
