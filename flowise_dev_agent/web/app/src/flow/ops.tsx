/** Ops of the Patch IR as sentences. */

type Op = Record<string, unknown>;

/** The ops in order; each unfolds to its JSON. */
export function OpList({ ops }: { ops: Op[] }) {
  return (
    <ol className="stack tight">
      {ops.map((op, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: ops have no id, and their order is fixed
        <li key={index}>
          <details>
            <summary>{opInWords(op)}</summary>
            <pre>{JSON.stringify(op, null, 2)}</pre>
          </details>
        </li>
      ))}
    </ol>
  );
}

/** What an op does, in one line. */
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
      return `Upgrade ${text("node_id")}`;
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
