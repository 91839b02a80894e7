/** All flows of a server with their states; the filter is in the address. */

import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import { Link } from "wouter";
import { api, dataOf } from "../api/client";
import { type FleetFilter, fleet, health } from "../api/queries";
import type { FleetState } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { ago } from "../ui/format";
import { MoreButton } from "../ui/MoreButton";
import { save } from "../ui/save";
import { TextInput } from "../ui/TextInput";
import { MOST_SEARCHED, searched } from "../ui/tooLong";
import { useAddress } from "../ui/useAddress";

const STATES: Record<FleetState, string> = {
  healthy: t("healthy"),
  changed_outside: t("edited in Flowise"),
  failing: t("last test failed"),
  broken: t("has errors"),
  ending_model: t("model ends"),
  outdated_nodes: t("outdated nodes"),
  missing_credential: t("credential missing"),
  never_tested: t("never tested"),
  not_checked: t("not checked yet"),
};

/** What keeps a flow from working now. */
const BAD = new Set<FleetState>(["failing", "broken", "ending_model", "missing_credential"]);

/** That a flow was never tested is told in a column of its own. */
const isTold = (state: FleetState) => state !== "never_tested";

export function FleetPage() {
  const [get, set] = useAddress();
  const known = get("state") in STATES ? (get("state") as FleetState) : undefined;
  const text = get("query");
  const wanted: FleetFilter = {
    instance: get("instance") || undefined,
    state: known,
    owner: get("owner") || undefined,
    query: useDeferredValue(searched(text)) || undefined,
  };
  const pages = useInfiniteQuery(fleet(wanted));
  const { data, error, isPending } = pages;
  const csv = useMutation({
    mutationFn: () => dataOf(api.GET("/fleet/export", { params: { query: wanted }, parseAs: "text" })),
    onSuccess: (lines) => save("flows.csv", lines, "text/csv"),
  });
  const servers = Object.keys(useQuery(health()).data?.flowise ?? {});
  const flows = data?.pages.flatMap((page) => page.flows) ?? [];
  const owners = [...new Set([...flows.map((flow) => flow.owner ?? ""), wanted.owner ?? ""])].filter(Boolean).sort();
  const filtered = Boolean(wanted.state || wanted.owner || wanted.query);
  const deleted = filtered ? [] : (data?.pages[0]?.deleted ?? []);
  return (
    <div className="stack">
      <div className="row apart">
        <h1>{t("State of all flows")}</h1>
        <button type="button" className="button" disabled={csv.isPending} onClick={() => csv.mutate()}>
          {csv.isPending ? t("Writing the file…") : t("Save as CSV")}
        </button>
      </div>
      <div className="row fleet-filters">
        <label className="field">
          {t("Name")}
          <TextInput
            type="search"
            most={MOST_SEARCHED}
            value={text}
            onChange={(event) => set("query", event.target.value)}
          />
        </label>
        <Choice
          label={t("State")}
          any={t("All states")}
          value={known}
          options={Object.entries(STATES)}
          onChoose={(value) => set("state", value)}
        />
        <Choice
          label={t("Owner")}
          any={t("All owners")}
          value={wanted.owner}
          options={owners.map((name) => [name, name])}
          onChoose={(value) => set("owner", value)}
        />
        {servers.length > 1 && (
          <Choice
            label={t("Instance")}
            any={t("default")}
            value={wanted.instance}
            options={servers.map((name) => [name, name])}
            onChoose={(value) => set("instance", value)}
          />
        )}
      </div>
      <ErrorNote error={error ?? csv.error} />
      {isPending && <p className="quiet">{t("Loading the flows…")}</p>}
      {data && flows.length === 0 && (
        <p className="quiet">{filtered ? t("No matching flows.") : t("There are no flows on this server yet.")}</p>
      )}
      {flows.length > 0 && (
        <table className="table fleet">
          <thead>
            <tr>
              <th scope="col">{t("Flow")}</th>
              <th scope="col">{t("State")}</th>
              {owners.length > 0 && <th scope="col">{t("Owner")}</th>}
              <th scope="col">{t("Changed")}</th>
              <th scope="col">{t("Tested")}</th>
            </tr>
          </thead>
          <tbody>
            {flows.map((flow) => (
              <tr key={flow.id}>
                <td>
                  <Link href={`/f/${flow.id}/${data?.pages[0]?.instance}`} className="words">
                    {flow.name}
                  </Link>
                </td>
                <td>
                  <span className="row">
                    {flow.states.filter(isTold).map((one) => (
                      <span key={one} className={one === "healthy" ? "badge ok" : BAD.has(one) ? "badge bad" : "badge"}>
                        {STATES[one]}
                      </span>
                    ))}
                  </span>
                </td>
                {owners.length > 0 && <td>{flow.owner}</td>}
                <td>{flow.changed_by ? ago(flow.updated) : t("{{when}} in Flowise", { when: ago(flow.updated) })}</td>
                <td>{flow.tested_at ? ago(flow.tested_at) : t("never tested")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <MoreButton list={pages}>{t("More flows")}</MoreButton>
      {deleted.length > 0 && (
        <section className="stack tight" aria-labelledby="deleted-title">
          <h2 id="deleted-title">{t("Deleted in Flowise")}</h2>
          <ul>
            {deleted.map((flow) => (
              <li key={flow.id}>
                <Link href={`/history/${flow.id}`} className="words">
                  {flow.name}
                </Link>{" "}
                <small>{ago(flow.noticed_at)}</small>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  /** What it is called when all are shown. */
  any: string;
  value: string | undefined;
  options: [string, string][];
  onChoose: (value: string) => void;
}

function Choice({ label, any, value, options, onChoose }: ChoiceProps) {
  return (
    <label className="field">
      {label}
      <select value={value ?? ""} onChange={(event) => onChoose(event.target.value)}>
        <option value="">{any}</option>
        {options.map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
