import { useMutation, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { keptKey, ROOT } from "../api/early";
import { caller } from "../api/queries";
import { t } from "../i18n";

/** Who is signed in, with a way out; nothing for those who use a key or need none. */
export function Person() {
  const { data: person } = useQuery(caller());
  const signOut = useMutation({
    mutationFn: () => dataOf(api.POST("/auth/sign-out", {})),
    onSuccess: ({ url }) => location.assign(url ?? `${ROOT}/`),
  });
  if (!person?.signed_in || keptKey() !== null) return null;
  return (
    <span className="person">
      <span className="person-name" title={person.name}>
        {person.name}
      </span>
      <button type="button" className="button" onClick={() => signOut.mutate()} disabled={signOut.isPending}>
        {t("Sign out")}
      </button>
    </span>
  );
}

/** The name of somebody else than who uses this page; "" for themselves and where nobody is known. */
export function useOther(name: string | null | undefined): string {
  const { data: person } = useQuery({ ...caller(), enabled: Boolean(name) });
  return !name || !person || name === person.name ? "" : name;
}
