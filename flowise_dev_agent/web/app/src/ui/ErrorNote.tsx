import type { ReactNode } from "react";

/** An error with its hint, as the service worded them. */
export function ErrorNote({ error, children }: { error: unknown; children?: ReactNode }) {
  if (!error) return null;
  const { message, hint } = error as { message?: string; hint?: string };
  return (
    <div role="alert" className="note bad">
      <p>{message || "Something went wrong."}</p>
      {hint && <p>{hint}</p>}
      {children}
    </div>
  );
}
