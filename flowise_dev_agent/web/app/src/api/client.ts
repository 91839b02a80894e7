/** The typed client of the service's API, with the key that the service may require. */
import createClient from "openapi-fetch";
import { t } from "../i18n";
import type { Texts } from "../i18n/texts";
import { keepKey, keptKey, noticePage, ROOT, taken } from "./early";
import type { paths } from "./schema";

/** An error response of the service: RFC 9457 problem details. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly hint?: string,
    readonly texts: Texts = {},
  ) {
    super(detail);
    this.name = "Problem";
  }
}

/** The service could not be reached. */
class Unreachable extends Error {
  readonly hint = t(
    "It may be restarting, or the network is down. No work is lost: sessions continue without this page.",
  );

  constructor() {
    super(t("The service does not respond."));
    this.name = "Unreachable";
  }
}

/** Asks for a key. `signIn` is the path at which a person can sign in instead, where the service has one. */
type KeyPrompt = (wrong: boolean, signIn: string | undefined) => Promise<string>;
let promptForKey: KeyPrompt = () => Promise.reject(new Error("No key dialog."));
let prompting: Promise<void> | null = null;

/** Register the dialog that asks the person for the key. */
export function onKeyNeeded(prompt: KeyPrompt): void {
  promptForKey = prompt;
}

/** Every route of the service. A call throws Problem or Unreachable, so `data` is always there: see `dataOf`. */
export const api = createClient<paths>({ baseUrl: ROOT, fetch: send });

/** The data of a successful call. */
export const dataOf = async <T>(call: Promise<{ data?: T }>): Promise<T> => (await call).data as T;

/** The successful response to a request; asks for the key when needed. Throws Problem or Unreachable. */
export async function send(request: Request): Promise<Response> {
  for (;;) {
    const key = keptKey();
    // A request can be sent once only, and this one may have to be repeated.
    const attempt = request.clone();
    if (key) attempt.headers.set("Authorization", `Bearer ${key}`);
    const response = noticePage((await taken(request)) ?? (await fetched(attempt)));
    if (response.ok) return response;
    if (response.status !== 401) throw await problemOf(response);
    // Another call may have received a new key meanwhile; then only repeat.
    if (keptKey() === key) await askForKey(key !== null, await signInPath(response));
  }
}

/** The routes for somebody who has a share link and no key: the link's last part opens them. */
export const sharedApi = (token: string) =>
  createClient<paths>({
    baseUrl: ROOT,
    fetch: async (request: Request) => {
      request.headers.set("Authorization", `Share ${token}`);
      const response = await fetched(request);
      if (response.ok) return response;
      throw await problemOf(response);
    },
  });

async function fetched(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw new Unreachable();
  }
}

/** One dialog, however many calls wait for the key. */
function askForKey(wrong: boolean, signIn: string | undefined): Promise<void> {
  prompting ??= promptForKey(wrong, signIn)
    .then(keepKey)
    .finally(() => {
      prompting = null;
    });
  return prompting;
}

async function signInPath(refusal: Response): Promise<string | undefined> {
  const body = (await refusal.json().catch(() => ({}))) as { details?: { sign_in?: string } };
  return body.details?.sign_in;
}

async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as {
    detail?: string;
    hint?: string;
    code?: string;
    texts?: Texts;
  };
  const detail = body.detail ?? t("The service responded with status {{status}}.", { status: response.status });
  // An error of JavaScript has its detail in `message`.
  const { detail: code, ...texts } = body.texts ?? {};
  return new Problem(response.status, body.code ?? "", detail, body.hint, { ...texts, ...(code && { message: code }) });
}
