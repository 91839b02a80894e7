import { useIsFetching, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

/** What has not come by then is put in where it belongs, although that moves what is below. */
const LATEST_MS = 2_000;

/** True once everything that the view asked for first has come, so that what is below can be shown where it stays. */
export function useArrived(): boolean {
  const client = useQueryClient();
  const first = { predicate: ({ state }: { state: { status: string } }) => state.status === "pending" };
  const waiting = useIsFetching(first);
  const [arrived, arrive] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again whenever a call has ended
  useEffect(() => {
    // By now all parts of the view have sent theirs.
    if (client.isFetching(first) === 0) arrive(true);
  }, [waiting, client]);
  useEffect(() => {
    const timer = window.setTimeout(() => arrive(true), LATEST_MS);
    return () => window.clearTimeout(timer);
  }, []);
  return arrived;
}
