import { useSearchParams } from "wouter";

/** Values that the address keeps, so that a search survives a reload and can be sent to a colleague. */
export function useAddress(): [(name: string) => string, (name: string, value: string) => void] {
  const [params, setParams] = useSearchParams();
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  return [(name) => params.get(name) ?? "", set];
}
