import { useQuery } from "@tanstack/react-query";
import { useContext, useMemo, useState } from "react";
import { sessionPreview } from "../api/queries";
import type { CanvasNode, Preview, SessionView } from "../api/types";
import { EditingContext, edited } from "../flow/edits";
import { FlowCanvas } from "../flow/FlowCanvas";
import { Legend, SessionDiff } from "../flow/FlowDiff";
import { calm, previewed } from "../flow/merge";
import { NodeDetails } from "../flow/NodeDetails";
import { t } from "../i18n";
import { plural } from "../ui/format";

interface Props {
  session: SessionView;
  written: boolean;
  /** Nodes that a model has named so far. */
  coming: CanvasNode[];
}

/** The flow as the session has it: from the plan on, before anything is written. */
export function Picture({ session, written, coming }: Props) {
  const revision = session.interrupt?.id ?? session.last_event_seq;
  const question = session.interrupt;
  // What cannot be built has no picture.
  const asked = question?.type === "plan_approval" && !question.data.contract.declined;
  const planned = !written && (session.plan !== null || asked);
  const { data: preview } = useQuery({ ...sessionPreview(session.thread_id, revision), enabled: planned });
  if (written)
    return <SessionDiff sessionId={session.thread_id} revision={session.last_event_seq} instance={session.instance} />;
  if (preview && preview.nodes.length > 0) return <Planned preview={preview} session={session} approved={!asked} />;
  if (coming.length > 0) return <Coming nodes={coming} />;
  const failed = session.status === "error" && t("The session failed before there was a plan.");
  const ended = session.outcome && t("No flow was made.");
  return (
    <div className="empty-picture">
      <p>{failed || ended || t("The picture appears with the plan.")}</p>
    </div>
  );
}

/** The nodes of a plan that is still being written. */
function Coming({ nodes }: { nodes: CanvasNode[] }) {
  const flow = { nodes: nodes.map((node) => ({ node, mark: "added" as const, fields: [], ghost: true })), edges: [] };
  return (
    <div className="change-canvas">
      <FlowCanvas flow={flow} label={t("The plan so far: {{nodes}}", { nodes: plural(nodes.length, "node") })}>
        <span className="badge live">{t("The plan is being written")}</span>
      </FlowCanvas>
    </div>
  );
}

interface PlannedProps {
  preview: Preview;
  session: SessionView;
  /** The person has said yes to it. */
  approved: boolean;
}

function Planned({ preview, session: { instance, status }, approved }: PlannedProps) {
  const edits = useContext(EditingContext)?.edits;
  const [chosen, setChosen] = useState<string | null>(null);
  const drawn = useMemo(() => calm(previewed(preview)), [preview]);
  const flow = useMemo(() => (edits ? edited(drawn, edits) : drawn), [drawn, edits]);
  const marked = flow.nodes.find(({ node }) => node.id === chosen);
  return (
    <div className="change-canvas">
      <FlowCanvas
        flow={flow}
        label={t("The planned flow. {{summary}}", { summary: preview.summary })}
        chosen={chosen}
        onChoose={setChosen}
      >
        {!approved ? (
          <span className="badge wait">{t("Planned; nothing is written yet")}</span>
        ) : status === "error" || status === "cancelled" ? (
          <span className="badge">{t("Not built")}</span>
        ) : (
          <span className="badge live">{t("Being built")}</span>
        )}
        <Legend marked={flow} />
      </FlowCanvas>
      {marked && (
        <NodeDetails key={marked.node.id} marked={marked} instance={instance} onClose={() => setChosen(null)} />
      )}
    </div>
  );
}
