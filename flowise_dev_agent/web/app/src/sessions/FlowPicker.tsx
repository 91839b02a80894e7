import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { flowSearch } from "../api/queries";
import { t } from "../i18n";
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

/** Search for a flow on the server. Without a choice the requirement decides. */
export function FlowPicker({ instance, chosen, onChoose }: Props) {
  const [text, setText] = useState("");
  const query = useDeferredValue(text.trim());
  const found = useQuery(flowSearch(query, instance || undefined));

  if (chosen) {
    return (
      <div className="field">
        <span>{t("Flow to change or copy")}</span>
        <span className="row">
          <span className="badge live">{chosen.name}</span>
          <button type="button" className="button plain" onClick={() => onChoose(null)}>
            {t("Choose another")}
          </button>
        </span>
      </div>
    );
  }
  return (
    <div className="picker">
      <label className="field">
        {t("Flow to change or copy")}
        <input
          type="search"
          placeholder={t("Search by name, node or prompt")}
          maxLength={200}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <ErrorNote error={query ? found.error : null} />
      {query && found.data && (
        <ul className="plain found" aria-label={t("Flows found")} aria-live="polite">
          {found.data.flows.map((flow) => (
            <li key={flow.id}>
              <button type="button" className="button plain" onClick={() => onChoose(flow)}>
                <span className="words">{flow.name}</span>
                <small>
                  {plural(flow.nodes, "node")}, {t("changed {{when}}", { when: ago(flow.updated) })}
                </small>
              </button>
            </li>
          ))}
          {found.data.flows.length === 0 && <li className="quiet">{t("No matching flows.")}</li>}
        </ul>
      )}
    </div>
  );
}
