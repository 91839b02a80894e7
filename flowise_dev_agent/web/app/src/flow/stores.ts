/** The document stores of a server, to choose one of. */
import { useQuery } from "@tanstack/react-query";
import { documentStores } from "../api/queries";
import { t } from "../i18n";
import type { Listed } from "../ui/form/schema";
import { plural } from "../ui/format";

/** Each by its name, as people say it; by its id where another one has the same name. */
export function useStores(instance: string | undefined, enabled = true): Listed[] {
  const { data } = useQuery({ ...documentStores(instance), enabled });
  const stores = data?.stores ?? [];
  return stores.map(({ id, name, chunks, sources }) => {
    const known = sources.length > 0 ? `${plural(chunks, "piece")}: ${sources.join(", ")}` : t("empty");
    const alone = stores.filter((one) => one.name.toLowerCase() === name.toLowerCase()).length === 1;
    return { value: alone ? name : id, also: id, label: `${name} (${known})` };
  });
}
