/** Calls that are sent while the program of the page still loads; see `boot.ts`. */

const KEY = "flowise-dev-agent-key";
/** The address of the service, without a slash at the end: where the page is, which a proxy may have under a path. */
export const ROOT = location.origin + location.pathname.replace(/\/[^/]*$/, "");
/** What nobody has asked for until then is out of date. */
const KEPT_MS = 20_000;
const begun = new Map<string, Promise<Response | null>>();

/** The key of this tab. */
export const keptKey = (): string | null => sessionStorage.getItem(KEY);
export const keepKey = (key: string): void => sessionStorage.setItem(KEY, key);
export const forgetKey = (): void => sessionStorage.removeItem(KEY);

/** Send a GET now; whoever asks for the same address first gets its response. */
export function begin(path: string): void {
  const key = keptKey();
  const response = fetch(ROOT + path, key ? { headers: { Authorization: `Bearer ${key}` } } : {}).catch(() => null);
  begun.set(addressOf(ROOT + path), response);
}

let page: string | null = null;

/** Once a response is of a service with another page, the next change of the address loads that one. */
export function noticePage(response: Response): Response {
  const now = response.headers.get("X-Page");
  if (page && now && now !== page) addEventListener("hashchange", () => location.reload(), { once: true });
  page ??= now;
  return response;
}

/** The response to a call that was sent already, once; null when there is none. */
export async function taken(request: Request): Promise<Response | null> {
  const address = addressOf(request.url);
  const response = request.method === "GET" ? begun.get(address) : undefined;
  begun.delete(address);
  return performance.now() < KEPT_MS ? ((await response) ?? null) : null;
}

function addressOf(address: string): string {
  const url = new URL(address);
  url.searchParams.sort();
  return url.pathname + url.search;
}
