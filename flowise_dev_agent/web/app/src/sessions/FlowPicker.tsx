import { useInfiniteQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { flowList } from "../api/queries";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, plural } from "../ui/format";
import { MoreButton } from "../ui/MoreButton";
import { TextInput } from "../ui/TextInput";
import { MOST_SEARCHED, searched } from "../ui/tooLong";

interface Flow {
  id: string;
  name: string;
}

const SHOWN = 8;

interface Props {
  instance: string;
  chosen: Flow | null;
  onChoose: (flow: Flow | null) => void;
  label?: string;
  /** Shown at once; else when the person turns to the search. */
  open?: boolean;
}

/** All flows on the server, a few at a time, with search. None is chosen beforehand. */
export function FlowPicker({ instance, chosen, onChoose, label = t("Flow to change or copy"), open = false }: Props) {
  const [text, setText] = useState("");
  const [turned, setTurned] = useState(false);
  const query = useDeferredValue(searched(text));
  const found = useInfiniteQuery({ ...flowList(query, instance || undefined, SHOWN), enabled: open || turned });

  const pages = found.data?.pages ?? [];
  const flows = pages.flatMap((page) => page.flows);
  const total = pages[0]?.total ?? 0;

  if (chosen) {
    return (
      <div className="field">
        <span>{label}</span>
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
        {label}
        <TextInput
          type="search"
          placeholder={t("Search by name, node or prompt")}
          most={MOST_SEARCHED}
          value={text}
          onFocus={() => setTurned(true)}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <ErrorNote error={found.error} />
      {found.data && (
        <>
          <small aria-live="polite">
            {total === 0
              ? t("No matching flows.")
              : t("{{shown}} of {{flows}}, last changed first", { shown: flows.length, flows: plural(total, "flow") })}
          </small>
          {flows.length > 0 && (
            <ul className="plain found" aria-label={t("Flows found")}>
              {flows.map((flow) => (
                <li key={flow.id}>
                  <button type="button" className="button plain" onClick={() => onChoose(flow)}>
                    <span className="words">{flow.name}</span>
                    <small>
                      {plural(flow.nodes, "node")}, {t("changed {{when}}", { when: ago(flow.updated) })}
                    </small>
                  </button>
                </li>
              ))}
              {found.hasNextPage && (
                <li>
                  <MoreButton list={found} plain>
                    {t("More flows")}
                  </MoreButton>
                </li>
              )}
            </ul>
          )}
        </>
      )}
    </div>
  );
}
