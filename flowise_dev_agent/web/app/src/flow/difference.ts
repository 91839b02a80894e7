import type { Difference } from "../api/types";
import { t } from "../i18n";
import { plural } from "../ui/format";

/** What differs between two flows, in a line: "2 nodes added, 1 node removed; 3 fields changed". */
export function inWords({ added, removed, moved, changed, connected, disconnected, settings }: Difference): string {
  const counted = (...groups: [number, string][]) =>
    groups.flatMap(([number, words]) => (number > 0 ? [plural(number, words)] : [])).join(", ");
  const fields = changed.reduce((sum, node) => sum + node.fields.length, 0);
  const parts = [
    counted([added.length, "node added"], [removed.length, "node removed"], [moved.length, "node moved"]),
    counted([fields, "field changed"]),
    counted([connected.length, "connection made"], [disconnected.length, "connection cut"]),
    counted([settings?.length ?? 0, "setting changed"]),
  ].filter(Boolean);
  return parts.join("; ") || t("no difference");
}
