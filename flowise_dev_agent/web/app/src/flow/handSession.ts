/** A session of the changes that a person has made by hand, and of the words that they add to them. */
import { useContext, useRef } from "react";
import { useLocation } from "wouter";
import { Problem } from "../api/client";
import { answerSession, getSession, startSession } from "../api/sessions";
import type { SessionView, StartSession } from "../api/types";
import { newKey } from "../sessions/start";
import { EditingContext, filesOf, opsOf } from "./edits";

/** Starts it and shows it; then the changes are the session's. */
export function useHandSession(chatflowId: string | null, instance: string | undefined) {
  const editing = useContext(EditingContext);
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
