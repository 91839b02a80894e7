// The service's API: JSON calls, event streams, and the key that both send (EventSource could not).

const KEY = "flowise-dev-agent-key";

/** What the service answered instead of a result: RFC 9457 problem details. */
export class Problem extends Error {
  constructor(status, body) {
    super([body.detail, body.hint].filter(Boolean).join(" ") || `The service answered ${status}.`);
    this.status = status;
    this.code = body.code;
  }
}

/** JSON from `path`; asks for the key when the service wants one. Throws Problem. */
export async function call(path, { method = "GET", body, headers = {} } = {}) {
  const response = await request(path, {
    method,
    headers: { ...headers, ...(body ? { "Content-Type": "application/json" } : {}) },
    body: body && JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

/** Calls `onEvent(event)` for each event of a session after `seq`, until the stream ends; comes back when it is cut. */
export async function follow(sessionId, seq, onEvent, signal) {
  let done = false;
  while (!done && !signal.aborted) {
    try {
      const response = await request(`/sessions/${sessionId}/stream?after_seq=${seq}`, { signal });
      for await (const event of events(response.body)) {
        if (event.seq) seq = event.seq;
        done = event.type === "done";
        onEvent(event);
      }
    } catch (error) {
      if (error instanceof Problem || signal.aborted) throw error;
    }
    if (!done && !signal.aborted) await new Promise((resume) => setTimeout(resume, 2000));
  }
}

async function request(path, options) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    const response = await fetch(path, { ...options, headers });
    if (response.ok) return response;
    if (response.status === 401) {
      await askForKey();
      continue;
    }
    throw new Problem(response.status, await response.json().catch(() => ({})));
  }
}

let asking = null;

/** One dialog, however many calls wait for the key. */
function askForKey() {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("key-dialog");
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(KEY, document.getElementById("key").value.trim());
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += value;
    const frames = buffer.split("\n\n");
    buffer = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim());
      if (data.length) yield JSON.parse(data.join("\n"));
    }
  }
}
