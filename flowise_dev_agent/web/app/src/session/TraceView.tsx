import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "../api/client";
import type { Trace } from "../api/types";
import { outputText } from "../flow/highlight";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { duration } from "../ui/format";

/** What happened inside the flow during one test, read when it is opened. */
export function TraceView({ session, sha256 }: { session: string; sha256: string }) {
  const [open, setOpen] = useState(false);
  const trace = useQuery({
    queryKey: ["trace", session, sha256],
    queryFn: () =>
      dataOf(api.GET("/sessions/{session_id}/traces/{sha256}", { params: { path: { session_id: session, sha256 } } })),
    enabled: open,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("What happened inside")}</summary>
      {trace.error && <ErrorNote error={trace.error} />}
      {trace.data ? <Steps trace={trace.data} /> : <p className="quiet">{trace.error ? "" : t("Loading…")}</p>}
    </details>
  );
}

function Steps({ trace }: { trace: Trace }) {
  const { turns, steps, used_tools, sources } = trace;
  return (
    <div className="stack tight">
      {turns.length > 1 &&
        turns.map((turn, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: turns never move, and two may be the same
          <p key={index} className="said">
            <strong>{turn.said}</strong> {turn.answer}
          </p>
        ))}
      {steps.length > 0 && (
        <ol aria-label={t("Steps")}>
          {steps.map((step, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a loop runs the same step again
            <li key={index}>
              <strong>{step.label || step.node_id}</strong>{" "}
              {step.duration_ms !== null && <small>{duration(step.duration_ms)}</small>}
              {step.error ? <p className="problem">{step.error}</p> : <p className="said">{outputText(step.output)}</p>}
            </li>
          ))}
        </ol>
      )}
      {used_tools.map((tool, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a tool may be called twice alike
        <p key={index}>
          {t("Tool")} <strong>{tool.tool}</strong>: {outputText(tool.input)} → {tool.error || outputText(tool.output)}
        </p>
      ))}
      {sources.map((source) => (
        <p key={source.text} className="said">
          {t("Source:")} {source.text}
        </p>
      ))}
      {steps.length + used_tools.length + sources.length === 0 && (
        <p className="quiet">{t("The flow tells no steps.")}</p>
      )}
      {trace.cut && <small>{t("Long texts were cut.")}</small>}
    </div>
  );
}
