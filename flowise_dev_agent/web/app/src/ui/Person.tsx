import { useMutation, useQuery } from "@tanstack/react-query";
import { api, dataOf, hasKey } from "../api/client";
import { t } from "../i18n";

/** Who is signed in, with a way out; nothing for those who use a key or need none. */
export function Person() {
  const { data: caller } = useQuery({
    queryKey: ["caller"],
    queryFn: ({ signal }) => dataOf(api.GET("/keys/current", { signal })),
    staleTime: Infinity,
  });
  const signOut = useMutation({
    mutationFn: () => dataOf(api.POST("/auth/sign-out", {})),
    onSuccess: ({ url }) => location.assign(url ?? "/"),
  });
  if (!caller?.signed_in || hasKey()) return null;
  return (
    <span className="person">
      <span className="person-name" title={caller.name}>
        {caller.name}
      </span>
      <button type="button" className="button" onClick={() => signOut.mutate()} disabled={signOut.isPending}>
        {t("Sign out")}
      </button>
    </span>
  );
}
