import type { ChangeSummary } from "./questions/shapes";

interface Props {
  sessionId: string;
  /** The newest event: a later one means that the change may be another. */
  seq: number;
  fallback: ChangeSummary;
}

/** What the session does to its flow. */
export function ChangeView({ fallback }: Props) {
  return (
    <div className="stack tight">
      <p>{fallback.summary}</p>
      <pre>{fallback.text}</pre>
    </div>
  );
}
