import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, dataOf } from "../api/client";
import type { DeliveryView } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, moment } from "../ui/format";
import { MoreButton } from "../ui/MoreButton";
import "./admin.css";

const KEY = ["deliveries"];
const STATES: Record<DeliveryView["status"], [string, string]> = {
  pending: ["pending", "live"],
  delivered: ["delivered", "ok"],
  failed: ["failed", "bad"],
  disabled: ["disabled", "warn"],
};
const TYPES: Record<string, string> = {
  "session.waiting": "question",
  "session.completed": "completed",
  "session.failed": "failed",
};

/** Webhook deliveries of all sessions; each can be sent again. */
export function WebhooksView() {
  const queries = useQueryClient();
  const [status, setStatus] = useState<DeliveryView["status"]>();
  const pages = useInfiniteQuery({
    queryKey: [...KEY, status],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      dataOf(api.GET("/deliveries", { params: { query: { status, cursor: pageParam } }, signal })),
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.deliveries.some((one) => one.status === "pending")) ? 2_000 : false,
  });
  const replay = useMutation({
    mutationFn: (one: DeliveryView) =>
      dataOf(
        api.POST("/sessions/{session_id}/deliveries/{delivery_id}/replay", {
          params: { path: { session_id: one.session_id, delivery_id: one.id } },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  const { data, error, isPending } = pages;
  const rows = data?.pages.flatMap((page) => page.deliveries) ?? [];
  return (
    <div className="stack">
      <h1>{t("Webhooks")}</h1>
      <p className="quiet">
        {t(
          "A session with a webhook URL sends a signed message for each question and at its end. Failed deliveries are repeated up to 8 times within 24 hours.",
        )}
      </p>
      <ErrorNote error={error ?? replay.error} />
      <div role="status">
        {replay.isSuccess && <p className="note ok">{t("Queued to be sent again, with the same id.")}</p>}
      </div>
      <label className="field narrow">
        {t("Status")}
        <select
          value={status ?? ""}
          onChange={(event) => setStatus((event.target.value || undefined) as typeof status)}
        >
          <option value="">{t("All")}</option>
          {Object.entries(STATES).map(([value, [name]]) => (
            <option key={value} value={value}>
              {t(name)}
            </option>
          ))}
        </select>
      </label>
      {isPending && <p className="quiet">{t("Loading the deliveries…")}</p>}
      {data && rows.length === 0 && <p className="quiet">{t("No deliveries.")}</p>}
      {rows.length > 0 && (
        <section className="scroll-x" aria-label={t("Deliveries")}>
          <table className="table">
            <thead>
              <tr>
                <th scope="col">{t("Session")}</th>
                <th scope="col">{t("To")}</th>
                <th scope="col">{t("Status")}</th>
                <th scope="col">{t("When")}</th>
                <th scope="col">
                  <span className="visually-hidden">{t("Send again")}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((one) => (
                <tr key={one.id}>
                  <td>
                    <Link href={`/s/${one.session_id}`}>{one.session_name ?? one.session_id.slice(0, 8)}</Link>{" "}
                    {t(TYPES[one.type] ?? one.type)}
                  </td>
                  <td>{one.origin}</td>
                  <td>
                    <span className={`badge ${STATES[one.status][1]}`}>{t(STATES[one.status][0])}</span>
                    <div>
                      <small>
                        {one.attempts}×
                        {one.response_status !== null &&
                          `, ${t("answered {{status}}", { status: one.response_status })}`}
                        {one.error && one.status !== "delivered" && `: ${worded(one, "error")}`}
                      </small>
                    </div>
                  </td>
                  <td>
                    <time dateTime={one.created_at} title={moment(one.created_at)}>
                      {ago(one.created_at)}
                    </time>
                  </td>
                  <td>
                    <button
                      type="button"
                      className="button"
                      disabled={replay.isPending || one.status === "pending"}
                      onClick={() => replay.mutate(one)}
                      aria-label={`${t("Send again")}: ${one.session_name ?? one.session_id}`}
                    >
                      {t("Send again")}
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      <MoreButton list={pages}>
        {pages.isFetchingNextPage ? t("Loading older deliveries…") : t("Older deliveries")}
      </MoreButton>
    </div>
  );
}
