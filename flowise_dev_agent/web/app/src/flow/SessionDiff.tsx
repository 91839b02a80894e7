import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "../ui/ErrorNote";
import { FlowDiff } from "./FlowDiff";
import { sessionChange } from "./queries";

/** What a session does to its flow, and what someone else did to it meanwhile. `revision`: see `sessionChange`. */
export function SessionDiff({
  sessionId,
  revision,
  height,
}: {
  sessionId: string;
  revision?: unknown;
  height?: string;
}) {
  const { data: change, error, isPending } = useQuery(sessionChange(sessionId, revision));
  if (isPending) return <p className="quiet">Reading the change…</p>;
  if (error) return <ErrorNote error={error} />;
  if (!change) return <p className="quiet">There is no flow to show yet.</p>;
  return (
    <div className="stack">
      {change.meanwhile && (
        <section className="stack tight" aria-label="What someone else changed">
          <h2 className="small-title">What someone else changed in Flowise meanwhile</h2>
          <FlowDiff change={change.meanwhile} height={height ?? "40vh"} />
          <h2 className="small-title">What this session changes</h2>
        </section>
      )}
      <FlowDiff change={change} {...(height && { height })} />
    </div>
  );
}
