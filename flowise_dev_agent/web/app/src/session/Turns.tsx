/** What was said: the person's own words and the questions of the session, in order. */

import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { flowConversation } from "../api/queries";
import type { ConversationSession, Turn } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { ErrorNote } from "../ui/ErrorNote";
import { ago } from "../ui/format";
import { Markdown } from "../ui/Markdown";
import { MoreButton } from "../ui/MoreButton";
import { StatusBadge } from "../ui/StatusBadge";
import { questionTitle } from "./questionTitles";
import { UserMessage } from "./UserMessage";

/** The turns, without the question that is still open, which has a card of its own. */
export function Turns({ turns, open, speaker }: { turns: Turn[]; open: string | null; speaker?: string }) {
  return turns
    .filter((turn) => turn.who === "person" || turn.interrupt?.id !== open)
    .map((turn, index) =>
      turn.who === "person" ? (
        // biome-ignore lint/suspicious/noArrayIndexKey: turns are only appended
        <UserMessage key={index} {...turn} words={wordsOf(turn)} speaker={speaker} />
      ) : (
        // biome-ignore lint/suspicious/noArrayIndexKey: turns are only appended
        <p key={index} className="turn theirs">
          {turn.interrupt?.type ? t(questionTitle(turn.interrupt.type, turn.interrupt.reason)) : worded(turn, "words")}
        </p>
      ),
    );
}

/** What the person said, without the last lines, which say the edits. */
const wordsOf = (turn: Turn): string =>
  worded(turn, "words")
    .split("\n")
    .slice(0, -turn.edits.length || undefined)
    .join("\n");

interface Props {
  chatflowId: string;
  instance: string;
  /** The session that is shown below, in full. */
  without?: string;
}

/** Earlier sessions on the flow, each folded to its request. */
export function Earlier({ chatflowId, instance, without }: Props) {
  const pages = useInfiniteQuery(flowConversation(chatflowId, instance));
  const sessions = (pages.data?.pages ?? [])
    .toReversed()
    .flatMap((page) => page.sessions)
    .filter((one) => one.thread_id !== without);
  return (
    <>
      <MoreButton list={pages} plain>
        {t("Show earlier conversations")}
      </MoreButton>
      <ErrorNote error={pages.error} />
      {sessions.map((one) => (
        <ConversationCard key={one.thread_id} session={one}>
          <Link href={`/s/${one.thread_id}`} className="button">
            {one.interrupt ? t("Answer the open question") : t("Open this conversation")}
          </Link>
        </ConversationCard>
      ))}
    </>
  );
}

interface CardProps {
  session: ConversationSession;
  speaker?: string;
  /** The way on from it. */
  children?: ReactNode;
}

/** A session, folded to its request. */
export function ConversationCard({ session, speaker, children }: CardProps) {
  const request = session.turns.find((turn) => turn.kind === "requirement")?.words ?? session.session_name ?? "";
  return (
    <details className="turn-card">
      <summary>
        <span className="clip grow">{request}</span>
        <StatusBadge session={session} />
        <small>{ago(session.updated_at)}</small>
      </summary>
      <div className="earlier">
        <Turns turns={session.turns} open={null} speaker={speaker} />
        {session.answer && <Markdown text={session.answer} />}
        {children}
      </div>
    </details>
  );
}
