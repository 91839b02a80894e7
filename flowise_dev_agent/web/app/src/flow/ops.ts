/** Ops of the Patch IR as sentences. */

export type Op = Record<string, unknown>;

/** One line that says what an op does. */
export function opInWords(op: Op): string {
  const text = (key: string) => String(op[key] ?? "");
  const at = (node: string, anchor: string) => (text(anchor) ? `${text(node)}.${text(anchor)}` : text(node));
  switch (op.op_type) {
    case "AddNode":
      return `Add ${text("node_name")} as ${text("node_id")}`;
    case "RemoveNode":
      return `Remove ${text("node_id")}`;
    case "ReplaceNode":
      return `Replace ${text("node_id")} by ${text("node_name")}`;
    case "UpgradeNode":
      return `Bring ${text("node_id")} up to date`;
    case "SetParam":
      return `Set ${text("param_name")} of ${text("node_id")} to ${shown(op.value)}`;
    case "UnsetParam":
      return `Clear ${text("param_name")} of ${text("node_id")}`;
    case "Connect":
      return `Connect ${at("source_node_id", "source_anchor")} to ${at("target_node_id", "target_anchor")}`;
    case "Disconnect":
      return `Disconnect ${at("source_node_id", "source_anchor")} from ${at("target_node_id", "target_anchor")}`;
    case "BindCredential":
      return `Bind ${text("credential_type") || "a"} credential to ${text("node_id")}`;
    default:
      return [text("op_type"), text("node_id")].filter(Boolean).join(" ");
  }
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? `“${value}”` : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
