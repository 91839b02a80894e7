import { useSearchParams } from "wouter";

/** Values that the address keeps, so that a search survives a reload and can be sent to a colleague. */
export function useAddress(): [(name: string) => string, (name: string, value: string) => void] {
  const [params] = useSearchParams();
  const set = (name: string, value: string) => {
    const address = new URL(location.href);
    if (value) address.searchParams.set(name, value);
    else address.searchParams.delete(name);
    // Not by the router: with a path behind the `#` it keeps the last value that would leave none.
    history.replaceState(history.state, "", address);
  };
  return [(name) => params.get(name) ?? "", set];
}
