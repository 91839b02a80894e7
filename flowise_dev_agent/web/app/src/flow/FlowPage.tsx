import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { flowGraph } from "../api/queries";
import { ErrorNote } from "../ui/ErrorNote";
import { plural } from "../ui/format";
import { FlowCanvas } from "./FlowCanvas";
import { inWords } from "./layout";
import { unmarked } from "./merge";
import { NodeDetails } from "./NodeDetails";
import { TryOut } from "./TryOut";

/** A flow on a server, with a chat to try it. */
export function FlowPage({ params }: { params: Record<string, string> }) {
  const { id = "", instance = "" } = params;
  const { data, error, isPending } = useQuery(flowGraph(id, instance));
  const [chosen, setChosen] = useState<string | null>(null);
  const node = data && unmarked(data.graph).nodes.find((one) => one.node.id === chosen);
  return (
    <div className="stack">
      <h1>{data?.flow.name ?? "Flow"}</h1>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">Loading the flow…</p>}
      {data && (
        <>
          <p className="row">
            <span className="badge">{data.flow.type.toLowerCase()}</span>
            <span className={data.flow.deployed ? "badge ok" : "badge"}>
              {data.flow.deployed ? "deployed" : "not deployed"}
            </span>
            {data.flow.draft && <span className="badge wait">draft of a session</span>}
            <small>
              {plural(data.flow.nodes, "node")} · {data.flow.instance}
            </small>
            <Link href={`/history/${id}`}>History</Link>
            {data.flow.url && (
              <a href={data.flow.url} target="_blank" rel="noopener noreferrer">
                Open in Flowise
              </a>
            )}
          </p>
          <div className="change-canvas tall">
            <FlowCanvas flow={data.graph} label={inWords(data.graph)} chosen={chosen} onChoose={setChosen} />
            {node && <NodeDetails marked={node} onClose={() => setChosen(null)} />}
          </div>
          <h2>Try it here</h2>
          <TryOut chatflowId={id} instance={instance} />
        </>
      )}
    </div>
  );
}
