/** JSON calls to the service, with the key that it may ask for (EventSource could not send it, fetch can). */

const KEY = "flowise-dev-agent-key";

/** What the service answered instead of a result: RFC 9457 problem details in people's words. */
export class Problem extends Error {
  readonly hint: string | undefined;

  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    hint?: string,
  ) {
    super(detail);
    this.name = "Problem";
    this.hint = hint;
  }
}

/** The service could not be reached at all. */
export class Unreachable extends Error {
  readonly hint =
    "It may be restarting, or the connection is gone. Nothing is lost: the work goes on without this page.";

  constructor() {
    super("The service does not answer.");
    this.name = "Unreachable";
  }
}

export interface CallOptions {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Sent as JSON. */
  body?: unknown;
  /** Undefined, null and "" are left out; a list is repeated. */
  query?: Record<string, string | number | boolean | string[] | null | undefined>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

type KeyPrompt = (wrong: boolean) => Promise<string>;
let promptForKey: KeyPrompt = () => Promise.reject(new Error("No key dialog."));
let asking: Promise<void> | null = null;

/** The app says once how a person is asked for the key. */
export function onKeyNeeded(prompt: KeyPrompt): void {
  promptForKey = prompt;
}

/** True when this tab keeps a key. */
export const hasKey = (): boolean => sessionStorage.getItem(KEY) !== null;

/** Forget the key of this tab. */
export const forgetKey = (): void => sessionStorage.removeItem(KEY);

/** JSON from `path`. Throws Problem or Unreachable; asks for the key when the service wants one. */
export async function call<T>(path: string, { body, query, headers, ...rest }: CallOptions = {}): Promise<T> {
  const response = await request(path + queryString(query), {
    ...rest,
    headers: { ...headers, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return (response.status === 204 ? null : await response.json()) as T;
}

/** The raw answer to a request, when it is a good one. Throws like `call`. */
export async function request(path: string, options: RequestInit): Promise<Response> {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = {
      ...(options.headers as Record<string, string>),
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
    };
    let response: Response;
    try {
      response = await fetch(path, { ...options, headers });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new Unreachable();
    }
    if (response.ok) return response;
    if (response.status === 401) {
      // Another call may have got a new key meanwhile: then this one only tries again.
      if (sessionStorage.getItem(KEY) === key) await askOnce(key !== null);
      continue;
    }
    throw await problemOf(response);
  }
}

/** One dialog, however many calls wait for the key. */
function askOnce(wrong: boolean): Promise<void> {
  asking ??= promptForKey(wrong)
    .then((key) => sessionStorage.setItem(KEY, key))
    .finally(() => {
      asking = null;
    });
  return asking;
}

async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as { detail?: string; hint?: string; code?: string };
  return new Problem(
    response.status,
    body.code ?? "",
    body.detail ?? `The service answered ${response.status}.`,
    body.hint,
  );
}

function queryString(query: CallOptions["query"]): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  }
  const text = parameters.toString();
  return text && `?${text}`;
}
