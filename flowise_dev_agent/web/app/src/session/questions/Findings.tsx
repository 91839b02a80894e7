import type { Finding } from "./shapes";

/** What the checks of the flow found. */
export function Findings({ findings }: { findings: Finding[] }) {
  if (findings.length === 0) return null;
  return (
    <ul className="plain stack tight" aria-label="Findings">
      {findings.map((one) => (
        <li
          key={`${one.code} ${one.where} ${one.message}`}
          className={one.severity === "error" ? "note bad" : "note warn"}
        >
          <p>{one.message}</p>
          {one.hint && <p>{one.hint}</p>}
          <small>
            {one.code}
            {one.where ? ` at ${one.where}` : ""}
          </small>
        </li>
      ))}
    </ul>
  );
}
