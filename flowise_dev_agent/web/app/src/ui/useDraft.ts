import { useState } from "react";

const PREFIX = "flowise-dev-agent-draft:";
/** A long word of letters and digits may be a key: such a text is not written to the browser's storage. */
const MAYBE_SECRET = /(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{20,}/i;

/**
 * A state that this tab keeps over reloads and navigation, for what a person has typed but not sent. `keep(null)`
 * forgets it. The initial value is used when nothing is kept, or nothing that `fits`.
 */
export function useDraft<Value>(
  key: string,
  initial: Value,
  fits: (kept: Value) => boolean = () => true,
): [Value, (value: Value | null) => void] {
  const [value, setValue] = useState<Value>(() => {
    const kept = read<Value>(PREFIX + key);
    return kept !== null && fits(kept) ? kept : initial;
  });
  const keep = (next: Value | null) => {
    setValue(next ?? initial);
    const text = JSON.stringify(next);
    if (next === null || MAYBE_SECRET.test(text)) sessionStorage.removeItem(PREFIX + key);
    else sessionStorage.setItem(PREFIX + key, text);
  };
  return [value, keep];
}

function read<Value>(key: string): Value | null {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null") as Value | null;
  } catch {
    return null;
  }
}

/** Forget all drafts whose key ends with this. */
export function forgetDrafts(ending: string): void {
  for (const key of Object.keys(sessionStorage))
    if (key.startsWith(PREFIX) && key.endsWith(ending)) sessionStorage.removeItem(key);
}
