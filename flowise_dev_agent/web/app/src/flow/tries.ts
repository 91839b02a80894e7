/** The conversations of a person with a flow; the page keeps them until it is closed. */
import { useState } from "react";
import type { ChatAnswer } from "../api/types";

export interface TryTurn {
  said: string;
  answer: ChatAnswer;
}

interface Tries {
  /** Each one's turns. */
  conversations: TryTurn[][];
  current: number;
}

/** The field with which a person begins: not that for files. */
export const TRY_FIELD = ".try-out :is(input, select, textarea):not([type=file])";

const kept = new Map<string, Tries>();

export function useTries(flow: string) {
  const [tries, setTries] = useState<Tries>(() => kept.get(flow) ?? { conversations: [[]], current: 0 });
  const { conversations, current } = tries;
  const set = (next: (before: Tries) => Tries) =>
    setTries((before) => {
      const after = next(before);
      kept.set(flow, after);
      return after;
    });
  return {
    turns: conversations[current] ?? [],
    count: conversations.length,
    current,
    /** A turn of the conversation with this number, whichever is shown by now. */
    add: (at: number, turn: TryTurn) =>
      set((before) => ({
        ...before,
        conversations: before.conversations.map((one, index) => (index === at ? [...one, turn] : one)),
      })),
    open: (at: number) => set((before) => ({ ...before, current: at })),
    begin: () =>
      set((before) => ({ conversations: [...before.conversations, []], current: before.conversations.length })),
    remove: (at: number) =>
      set((before) => {
        const left = before.conversations.filter((_, index) => index !== at);
        return { conversations: left.length ? left : [[]], current: Math.max(0, at - 1) };
      }),
  };
}
