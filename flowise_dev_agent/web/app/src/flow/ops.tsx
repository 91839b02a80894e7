import type { PatchOp } from "../api/types";

/** The ops in order; each unfolds to its JSON. */
export function OpList({ ops }: { ops: PatchOp[] }) {
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
export function opInWords(op: PatchOp): string {
  switch (op.op_type) {
    case "AddNode":
      return `Add ${op.node_name} as ${op.node_id}`;
    case "RemoveNode":
      return `Remove ${op.node_id}`;
    case "ReplaceNode":
      return `Replace ${op.node_id} by ${op.node_name}`;
    case "UpgradeNode":
      return `Upgrade ${op.node_id}`;
    case "SetParam":
      return `Set ${op.param_name} of ${op.node_id} to ${shown(op.value)}`;
    case "UnsetParam":
      return `Clear ${op.param_name} of ${op.node_id}`;
    case "Connect":
    case "Disconnect": {
      const source = port(op.source_node_id, op.source_anchor);
      const target = port(op.target_node_id, op.target_anchor);
      return op.op_type === "Connect" ? `Connect ${source} to ${target}` : `Disconnect ${source} from ${target}`;
    }
    case "BindCredential":
      return `Bind ${op.credential_type || "a"} credential to ${op.node_id}`;
    default:
      return `${op.op_type} ${op.node_id}`;
  }
}

const port = (node: string, anchor: string | null | undefined): string => (anchor ? `${node}.${anchor}` : node);

function shown(value: unknown): string {
  const text = typeof value === "string" ? `“${value}”` : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
