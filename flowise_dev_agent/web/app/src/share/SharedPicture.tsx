import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { sharedApi } from "../api/client";
import type { CanvasView, SharedView } from "../api/types";
import { FlowCanvas } from "../flow/FlowCanvas";
import { Legend } from "../flow/FlowDiff";
import { inWords } from "../flow/layout";
import { previewed, unmarked } from "../flow/merge";
import { NodeDetails } from "../flow/NodeDetails";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";

interface Props {
  token: string;
  preview: SharedView["preview"];
  /** The version to show; the preview without one. */
  version: string | null;
}

/** The flow that a share link shows: as a session plans it, or a version of it. */
export function SharedPicture({ token, preview, version }: Props) {
  const [chosen, setChosen] = useState<string | null>(null);
  const kept = useQuery({
    queryKey: ["shared", token, version],
    queryFn: async ({ signal }) => {
      const params = { path: { version: version ?? "" } };
      return (await sharedApi(token).GET("/shared/versions/{version}", { params, signal })).data as CanvasView;
    },
    enabled: version !== null,
    staleTime: Infinity,
  });
  const planned = version === null && preview ? preview : null;
  const flow = useMemo(
    () => (planned ? previewed(planned) : kept.data ? unmarked(kept.data) : null),
    [planned, kept.data],
  );
  if (kept.error) return <ErrorNote error={kept.error} />;
  if (!flow)
    return (
      <div className="empty-picture">
        <p>{version ? t("Loading…") : t("The picture appears with the plan.")}</p>
      </div>
    );
  const marked = flow.nodes.find(({ node }) => node.id === chosen);
  const label = planned
    ? t("The planned flow. {{summary}}", { summary: planned.summary })
    : inWords(kept.data as CanvasView);
  return (
    <div className="change-canvas">
      <FlowCanvas key={version} flow={flow} label={label} chosen={chosen} onChoose={setChosen}>
        {version && <span className="badge">{version}</span>}
        {planned && <Legend marked={flow} />}
      </FlowCanvas>
      {marked && <NodeDetails key={marked.node.id} marked={marked} onClose={() => setChosen(null)} />}
    </div>
  );
}
