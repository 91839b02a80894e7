import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../api/client";
import { ErrorNote } from "../ui/ErrorNote";
import { ago, moment } from "../ui/format";
import type { DeliveryView } from "./types";
import "./admin.css";

const KEY = ["deliveries"];
const STATES: Record<DeliveryView["status"], [string, string]> = {
  pending: ["on its way", "live"],
  delivered: ["delivered", "ok"],
  failed: ["given up", "bad"],
  disabled: ["not wanted", "warn"],
};
const TYPES: Record<string, string> = {
  "session.waiting": "has a question",
  "session.completed": "has ended",
  "session.failed": "has failed",
};

interface Page {
  deliveries: DeliveryView[];
  next_cursor: string | null;
}

/** Webhooks of all sessions: what was told to whom, and sending one again. */
export function WebhooksView() {
  const queries = useQueryClient();
  const [status, setStatus] = useState("");
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: [...KEY, status],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => call<Page>("/deliveries", { query: { status, cursor: pageParam }, signal }),
    getNextPageParam: (last) => last.next_cursor,
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.deliveries.some((one) => one.status === "pending")) ? 2_000 : false,
  });
  const replay = useMutation({
    mutationFn: (one: DeliveryView) =>
      call(`/sessions/${one.session_id}/deliveries/${one.id}/replay`, { method: "POST" }),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  const rows = data?.pages.flatMap((page) => page.deliveries) ?? [];
  return (
    <div className="stack">
      <h1>Webhooks</h1>
      <p className="quiet">
        A session that was started with a webhook tells it of each question and of its end, signed. A receiver that is
        away is tried 8 times over a day.
      </p>
      <ErrorNote error={error ?? replay.error} />
      <div role="status">{replay.isSuccess && <p className="note ok">It is sent again, under its old id.</p>}</div>
      <label className="field narrow">
        State
        <select value={status} onChange={(event) => setStatus(event.target.value)}>
          <option value="">All</option>
          {Object.entries(STATES).map(([value, [name]]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {isPending && <p className="quiet">Reading the deliveries…</p>}
      {data && rows.length === 0 && <p className="quiet">There are none.</p>}
      {rows.length > 0 && (
        <section className="scroll-x" aria-label="Deliveries">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Session</th>
                <th scope="col">To</th>
                <th scope="col">State</th>
                <th scope="col">When</th>
                <th scope="col">
                  <span className="visually-hidden">Send again</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((one) => (
                <tr key={one.id}>
                  <td>
                    <Link href={`/s/${one.session_id}`}>{one.session_name ?? one.session_id.slice(0, 8)}</Link>{" "}
                    {TYPES[one.type] ?? one.type}
                  </td>
                  <td>{one.origin}</td>
                  <td>
                    <span className={`badge ${STATES[one.status][1]}`}>{STATES[one.status][0]}</span>
                    <div>
                      <small>
                        {one.attempts}×{one.response_status !== null && `, answered ${one.response_status}`}
                        {one.error && one.status !== "delivered" && `: ${one.error}`}
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
                      aria-label={`Send again: ${one.session_name ?? one.session_id}`}
                    >
                      Send again
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {hasNextPage && (
        <div className="actions">
          <button type="button" className="button" onClick={() => fetchNextPage()} disabled={isFetchingNextPage}>
            {isFetchingNextPage ? "Reading…" : "Show older ones"}
          </button>
        </div>
      )}
    </div>
  );
}
