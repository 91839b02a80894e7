import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { findFlows } from "../api/flows";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, plural } from "../ui/format";

interface Flow {
  id: string;
  name: string;
}

interface Props {
  instance: string;
  chosen: Flow | null;
  onChoose: (flow: Flow | null) => void;
}

/** A flow of the server, found by words; none leaves it to what the requirement says. */
export function FlowPicker({ instance, chosen, onChoose }: Props) {
  const [text, setText] = useState("");
  const sought = useDeferredValue(text.trim());
  const found = useQuery({
    queryKey: ["flows", instance, sought],
    queryFn: ({ signal }) => findFlows(sought, instance || undefined, signal),
    enabled: sought !== "",
    placeholderData: (before) => before,
  });

  if (chosen) {
    return (
      <div className="field">
        <span>Flow to change or copy</span>
        <span className="row">
          <span className="badge live">{chosen.name}</span>
          <button type="button" className="button plain" onClick={() => onChoose(null)}>
            Choose another
          </button>
        </span>
      </div>
    );
  }
  return (
    <div className="picker">
      <label className="field">
        Flow to change or copy
        <input
          type="search"
          placeholder="Search by name, node or prompt"
          maxLength={200}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <ErrorNote error={sought ? found.error : null} />
      {sought && found.data && (
        <ul className="plain found" aria-label="Flows found" aria-live="polite">
          {found.data.flows.map((flow) => (
            <li key={flow.id}>
              <button type="button" className="button plain" onClick={() => onChoose(flow)}>
                <span className="words">{flow.name}</span>
                <small>
                  {plural(flow.nodes, "node")}, changed {ago(flow.updated)}
                </small>
              </button>
            </li>
          ))}
          {found.data.flows.length === 0 && <li className="quiet">No flow fits.</li>}
        </ul>
      )}
    </div>
  );
}
