import type { SessionStatus } from "../api/types";
import { statusWord } from "../session/words";

/** A session's status, with a dot that is animated while it works. */
export function StatusBadge({ session }: { session: { status: SessionStatus; outcome: string | null } }) {
  const { text, tone } = statusWord(session.status, session.outcome);
  return (
    <span className={`badge ${tone}`}>
      <span className="dot" aria-hidden="true" />
      {text}
    </span>
  );
}
