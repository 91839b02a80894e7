/** The credential of a node, or of a model or tool inside of it: one of the server's, or a new one. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useContext, useId } from "react";
import { credentials } from "../api/queries";
import { t } from "../i18n";
import { AddCredential } from "../ui/AddCredential";
import { ErrorNote } from "../ui/ErrorNote";
import { EditingContext } from "./edits";

interface Props {
  nodeId: string;
  /** Where it is inside of the node, such as `llmModelConfig`; "" for the node itself. */
  path: string;
  /** One of these fits. */
  types: string[];
  /** The flow has one already; which one it is, is not shown. */
  bound: boolean;
  instance: string;
}

export function CredentialField({ nodeId, path, types, bound, instance }: Props) {
  const editing = useContext(EditingContext);
  const queries = useQueryClient();
  const found = useQuery(credentials(instance));
  const id = useId();
  if (!editing) return null;
  const fitting = found.data?.credentials.filter((one) => types.includes(one.type)) ?? [];
  const op = editing.edits.find(
    (one) => one.op_type === "BindCredential" && one.node_id === nodeId && (one.path ?? "") === path,
  );
  const choose = (credential_id: string, credential_type: string) =>
    editing.add({ op_type: "BindCredential", node_id: nodeId, credential_id, credential_type, ...(path && { path }) });
  return (
    <div className="field" data-field={path || "credential"}>
      <label htmlFor={id}>{t("Credential")}</label>
      <select
        id={id}
        value={op?.credential_id ?? ""}
        onChange={({ target }) => {
          const chosen = fitting.find((one) => one.id === target.value);
          if (chosen) choose(chosen.id, chosen.type);
          else if (op) editing.takeOut(op);
        }}
      >
        <option value="">{bound ? t("As it is: bound") : t("Choose…")}</option>
        {fitting.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name}
          </option>
        ))}
      </select>
      <ErrorNote error={found.error} />
      {types[0] && (
        <AddCredential
          type={types[0]}
          instance={instance}
          onCreated={(made) => {
            void queries.invalidateQueries({ queryKey: credentials(instance).queryKey });
            choose(made.id, made.type);
          }}
        />
      )}
    </div>
  );
}
