import { afterEach, expect, it, vi } from "vitest";
import { noticePage } from "./early";

afterEach(() => vi.unstubAllGlobals());

const of = (page?: string) => new Response(null, page ? { headers: { "X-Page": page } } : {});

it("loads the page of a newer service at the next change of the address", () => {
  const reload = vi.fn();
  vi.stubGlobal("location", { reload });
  for (const response of [of(), of("first"), of("first")]) noticePage(response);
  dispatchEvent(new Event("hashchange"));
  expect(reload).not.toHaveBeenCalled();
  noticePage(of("second"));
  expect(reload).not.toHaveBeenCalled();
  dispatchEvent(new Event("hashchange"));
  dispatchEvent(new Event("hashchange"));
  expect(reload).toHaveBeenCalledOnce();
});
