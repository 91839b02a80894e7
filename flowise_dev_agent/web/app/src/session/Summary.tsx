import { useQuery } from "@tanstack/react-query";
import { getSummary } from "../api/sessions";
import { ErrorNote } from "../ui/ErrorNote";
import { Markdown } from "../ui/Markdown";

/** The session on one page, as one would hand it to a colleague. */
export function Summary({ sessionId }: { sessionId: string }) {
  const { data, error } = useQuery({ queryKey: ["summary", sessionId], queryFn: () => getSummary(sessionId) });
  if (!data) return error ? <ErrorNote error={error} /> : <p className="quiet">Writing the summary…</p>;
  return <Markdown text={data.summary} level={2} />;
}
