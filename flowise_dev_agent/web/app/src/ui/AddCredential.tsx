/** A form for a secret, which goes to Flowise and is kept neither here nor in the service. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import { credentialTypes, health } from "../api/queries";
import type { CreatedCredential, CredentialField } from "../api/types";
import { t } from "../i18n";
import { ErrorText } from "./ErrorText";
import { FormDialog, useDialog } from "./FormDialog";
import { Fields } from "./form/Fields";
import { fieldsOf, type Schema } from "./form/schema";
import { TextInput } from "./TextInput";

/** Of a value. */
const MOST_CHARACTERS = 20_000;

interface Props {
  /** The type that is needed; the person chooses when it is not known. */
  type?: string;
  /** The Flowise server; the person chooses when it is not known and there are several. */
  instance?: string;
  onCreated?: (created: CreatedCredential) => void;
}

/** A button that opens the form. */
export function AddCredential({ type, instance, onCreated }: Props) {
  const { isOpen, opens, onClosed } = useDialog();
  const [created, setCreated] = useState<CreatedCredential | null>(null);

  return (
    <div className="stack tight">
      <div>
        <button {...opens} className="button">
          {type ? t("Add a credential for {{type}}", { type }) : t("Add a credential")}
        </button>
      </div>
      <p role="status">
        {created && (
          <>
            “{created.name}” ({created.type}
            {t(") is stored in Flowise now.")}
          </>
        )}
      </p>
      {isOpen && (
        <FormDialog titled="credential-title" onClosed={onClosed}>
          {(close) => (
            <CredentialForm
              type={type}
              instance={instance}
              onCancel={close}
              onCreated={(made) => {
                close();
                setCreated(made);
                onCreated?.(made);
              }}
            />
          )}
        </FormDialog>
      )}
    </div>
  );
}

interface FormProps {
  type: string | undefined;
  instance: string | undefined;
  onCancel: () => void;
  onCreated: (created: CreatedCredential) => void;
}

/** The values stay in the fields: no state, no cache and no address has them. No spell checker sends them on. */
function CredentialForm({ type, instance, onCancel, onCreated }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  const service = useQuery({ ...health(), enabled: instance === undefined });
  const servers = Object.keys(service.data?.flowise ?? {});
  const [server, setServer] = useState(instance);
  const [chosen, setChosen] = useState(type ?? "");
  const types = useQuery(credentialTypes(server));
  const fields = types.data?.types.find((one) => one.name === chosen)?.fields ?? [];
  const unknown = types.data !== undefined && chosen !== "" && !types.data.types.some((one) => one.name === chosen);

  const create = useMutation({
    mutationFn: () => {
      const values = [...new FormData(form.current ?? undefined)].filter(([, value]) => value !== "");
      const { name = "", ...given } = Object.fromEntries(values) as Record<string, string>;
      const prefix = "field:";
      const body = {
        name: name.trim(),
        type: chosen,
        fields: Object.fromEntries(Object.entries(given).map(([key, value]) => [key.slice(prefix.length), value])),
        instance: server ?? null,
      };
      return dataOf(api.POST("/credentials", { body }));
    },
    onSuccess: onCreated,
  });

  function submit(event: FormEvent) {
    event.preventDefault();
    create.mutate();
  }

  return (
    <form ref={form} method="post" className="stack" autoComplete="off" spellCheck={false} onSubmit={submit}>
      <h2 id="credential-title">{t("Add a credential")}</h2>
      <p className="quiet">{t("The values go to Flowise, which encrypts them. This service stores none of them.")}</p>
      {servers.length > 1 && (
        <label className="field">
          {t("Flowise server")}
          <select value={server ?? ""} onChange={(event) => setServer(event.target.value || undefined)}>
            <option value="">{t("Default")}</option>
            {servers.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        </label>
      )}
      <ErrorText error={types.error} />
      {types.isPending && <p className="quiet">{t("Reading the credential types…")}</p>}
      {types.data && type === undefined && (
        <label className="field">
          {t("Type")}
          <select required value={chosen} onChange={(event) => setChosen(event.target.value)}>
            <option value="">{t("Choose…")}</option>
            {types.data.types.map((one) => (
              <option key={one.name} value={one.name}>
                {one.label}
              </option>
            ))}
          </select>
        </label>
      )}
      {unknown && (
        <p className="note bad">
          {t("This Flowise server has no credential type “")}
          {chosen}”.
        </p>
      )}
      {fields.length > 0 && (
        <>
          <label className="field">
            {t("Name")}
            <TextInput name="name" required most={120} defaultValue={chosen} />
            <small>{t("How people recognise it.")}</small>
          </label>
          <Fields key={chosen} prefix="field:" fields={fieldsOf(schemaOf(fields))} values={{}} />
        </>
      )}
      <ErrorText error={create.error} />
      <div className="actions">
        <button type="submit" className="button primary" disabled={fields.length === 0 || create.isPending}>
          {create.isPending ? t("Sending…") : t("Store in Flowise")}
        </button>
        <button type="button" className="button" onClick={onCancel}>
          {t("Cancel")}
        </button>
      </div>
    </form>
  );
}

/** What a credential type asks for, as the schema of a form. */
const schemaOf = (fields: CredentialField[]): Schema => ({
  required: fields.filter((one) => one.required).map((one) => one.name),
  properties: Object.fromEntries(
    fields.map((one): [string, Schema] => [
      one.name,
      {
        title: one.required ? one.label : `${one.label} ${t("(optional)")}`,
        default: one.default,
        maxLength: MOST_CHARACTERS,
        "x-rows": one.multiline ? 4 : 1,
        ...(one.secret && { format: "password" }),
        ...(one.choices.length > 0 && { enum: ["", ...one.choices] }),
      },
    ]),
  ),
});
