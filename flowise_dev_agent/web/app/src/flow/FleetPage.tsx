/** All flows of a server with their states; the filter is in the address. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { fleet } from "../api/queries";
import type { FleetState } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { ago } from "../ui/format";
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

export function FleetPage() {
  const [get, set] = useAddress();
  const instance = get("instance") || undefined;
  const state = (get("state") in STATES ? get("state") : undefined) as FleetState | undefined;
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    fleet(instance, state),
  );
  const flows = data?.pages.flatMap((page) => page.flows) ?? [];
  const deleted = state ? [] : (data?.pages[0]?.deleted ?? []);
  return (
    <div className="stack">
      <div className="row apart">
        <h1>{t("State of all flows")}</h1>
        <label className="field">
          {t("State")}
          <select value={state ?? ""} onChange={(event) => set("state", event.target.value)}>
            <option value="">{t("All states")}</option>
            {Object.entries(STATES).map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
      </div>
      <ErrorNote error={error} />
      {isPending && <p className="quiet">{t("Loading the flows…")}</p>}
      {data && flows.length === 0 && <p className="quiet">{t("No flow is in this state.")}</p>}
      {flows.length > 0 && (
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{t("Flow")}</th>
              <th scope="col">{t("State")}</th>
              <th scope="col">{t("Changed")}</th>
              <th scope="col">{t("Tested")}</th>
            </tr>
          </thead>
          <tbody>
            {flows.map((flow) => (
              <tr key={flow.id}>
                <td>
                  <Link href={`/history/${flow.id}`} className="words">
                    {flow.name}
                  </Link>
                </td>
                <td>
                  {flow.states.map((one) => (
                    <span key={one} className={one === "healthy" ? "badge ok" : "badge"}>
                      {STATES[one]}
                    </span>
                  ))}
                </td>
                <td>
                  {ago(flow.updated)}
                  {flow.changed_by && ` · ${flow.changed_by}`}
                </td>
                <td>{flow.tested_at ? ago(flow.tested_at) : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {hasNextPage && (
        <button type="button" className="button" disabled={isFetchingNextPage} onClick={() => fetchNextPage()}>
          {t("More flows")}
        </button>
      )}
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
