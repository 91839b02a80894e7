import { useEffect, useState } from "react";

const PREFIX = "flowise-dev-agent-draft:";
/** A long word of letters and several digits may be a key: such a text is not written to the browser's storage. */
const MAYBE_SECRET = /(?=[\w-]*[a-z])(?=(?:[\w-]*?\d){3})[\w-]{20,}/i;
/** No secrets: ids, and the hash of a flow. */
const KNOWN = /"base":"[0-9a-f]{64}"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/**
 * A state that this tab keeps over reloads and navigation, for what a person has typed but not sent. `keep(null)`
 * forgets it. The initial value is used when nothing is kept, or nothing that `fits`. A `shared` one is kept by the
 * browser: all its tabs have it.
 */
export function useDraft<Value>(
  key: string,
  initial: Value,
  fits: (kept: Value) => boolean = () => true,
  shared = false,
): [Value, (value: Value | null) => void] {
  const storage = shared ? localStorage : sessionStorage;
  const load = () => {
    const kept = read<Value>(storage, PREFIX + key);
    return { key, value: kept !== null && fits(kept) ? kept : initial };
  };
  const [held, setHeld] = useState(load);
  const current = held.key === key ? held : load();
  if (current !== held) setHeld(current);
  useEffect(() => {
    if (!shared) return;
    const elsewhere = (event: StorageEvent) => {
      if (event.key === PREFIX + key) setHeld(load());
    };
    window.addEventListener("storage", elsewhere);
    return () => window.removeEventListener("storage", elsewhere);
  });
  const keep = (next: Value | null) => {
    setHeld({ key, value: next ?? initial });
    const text = JSON.stringify(next);
    if (next === null || MAYBE_SECRET.test(text.replaceAll(KNOWN, ""))) storage.removeItem(PREFIX + key);
    else storage.setItem(PREFIX + key, text);
  };
  return [current.value, keep];
}

function read<Value>(storage: Storage, key: string): Value | null {
  try {
    return JSON.parse(storage.getItem(key) ?? "null") as Value | null;
  } catch {
    return null;
  }
}

/** Forget all drafts whose key ends with this. */
export function forgetDrafts(ending: string): void {
  for (const key of Object.keys(sessionStorage))
    if (key.startsWith(PREFIX) && key.endsWith(ending)) sessionStorage.removeItem(key);
}
