/** Forms that connect the service to a Flowise server and to a model. The keys stay in their fields. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, type RefObject, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import { caller, connections } from "../api/queries";
import type { ConnectionsView, ConnectModel } from "../api/types";
import { t } from "../i18n";
import { ConfirmButton } from "./ConfirmButton";
import { ErrorNote } from "./ErrorNote";
import { FormDialog, useDialog } from "./FormDialog";
import { ModelLimits } from "./ModelLimits";
import { TextInput } from "./TextInput";

type Kind = "flowise" | "model";

/** What shows a Flowise or a model, and is asked again after a change. */
const CONCERNED = new Set(["connections", "health", "info", "instances", "flows", "settings", "credential-types"]);

/** The variables that set it instead. */
const VARIABLES: Record<Kind, string> = {
  flowise: "FLOWISE_API_ENDPOINT=http://localhost:3000\nFLOWISE_API_KEY=…",
  model: "ANTHROPIC_API_KEY=…   # or OPENAI_API_KEY, OPENAI_BASE_URL",
};

/** What is connected, and the button that changes it. */
export function Connection({ kind }: { kind: Kind }) {
  const { data } = useQuery(connections());
  const may = useQuery(caller()).data?.scopes.includes("admin") ?? false;
  const { isOpen, opens, onClosed } = useDialog();
  const client = useQueryClient();
  const concerned = () => client.invalidateQueries({ predicate: ({ queryKey }) => CONCERNED.has(String(queryKey[0])) });
  const forget = useMutation({
    mutationFn: (force: boolean) =>
      dataOf(
        kind === "flowise"
          ? api.DELETE("/connections/flowise", { params: { query: { force } } })
          : api.DELETE("/connections/model", {}),
      ),
    onSuccess: concerned,
  });
  if (!data) return null;
  const { source } = data[kind];
  const stored = source === "stored" || source === "unreadable";
  return (
    <div className="stack tight">
      <p role="status">{stateOf(kind, data)}</p>
      {kind === "model" && <ModelLimits />}
      {source === "environment" ? null : may ? (
        <div className="row">
          <button {...opens} className={stored || kind === "model" ? "button" : "button primary"}>
            {kind === "flowise"
              ? stored
                ? t("Change the Flowise connection")
                : t("Connect a Flowise")
              : stored
                ? t("Change the model")
                : t("Connect a model")}
          </button>
          {stored && (
            <ConfirmButton
              label={t("Disconnect")}
              question={t("Forget the address and the key?")}
              yes={t("Disconnect")}
              onYes={() => forget.mutate(false)}
              busy={forget.isPending}
            />
          )}
        </div>
      ) : (
        <small>{t("Somebody with the scope “admin” can change this.")}</small>
      )}
      <ErrorNote error={forget.error}>
        {sessionsAreOpen(forget.error) && (
          <button type="button" className="button" onClick={() => forget.mutate(true)}>
            {t("Stop the sessions and disconnect")}
          </button>
        )}
      </ErrorNote>
      {isOpen && (
        <FormDialog titled="connect-title" onClosed={onClosed}>
          {(close) =>
            !data.storable ? (
              <Settings kind={kind} onClose={close} />
            ) : kind === "flowise" ? (
              <FlowiseForm view={data} onClose={close} onDone={concerned} />
            ) : (
              <ModelForm onClose={close} onDone={concerned} />
            )
          }
        </FormDialog>
      )}
    </div>
  );
}

/** Whether it was refused because sessions go on with what would be replaced. */
const sessionsAreOpen = (error: unknown) => (error as { code?: string } | null)?.code === "sessions_open";

function stateOf(kind: Kind, { flowise, model }: ConnectionsView): string {
  if (kind === "flowise") {
    if (flowise.source === "unreadable") return t("The stored connection cannot be read: SECRETS_KEY has changed.");
    if (flowise.source === "none") return t("No Flowise is connected yet.");
    return t("Connected to {{address}}", { address: flowise.endpoint ?? "" });
  }
  if (model.source === "unreadable") return t("The stored connection cannot be read: SECRETS_KEY has changed.");
  if (model.engine === "deterministic") return t("Works without a model");
  return t("Plans with {{model}}", { model: model.model });
}

/** Where the service may keep no keys: what to write instead. */
function Settings({ kind, onClose }: { kind: Kind; onClose: () => void }) {
  return (
    <div className="stack">
      <h2 id="connect-title">{kind === "flowise" ? t("Connect a Flowise") : t("Connect a model")}</h2>
      <p>
        {t("The service keeps no keys yet. Write these settings into its environment or .env, and start it again:")}
      </p>
      <pre>{VARIABLES[kind]}</pre>
      <p>{t("Or set this one, and connect here: the key is then kept encrypted.")}</p>
      <pre>{`SECRETS_KEY=…   # openssl rand -base64 32`}</pre>
      <div className="actions">
        <button type="button" className="button primary" onClick={onClose}>
          {t("Close")}
        </button>
      </div>
    </div>
  );
}

interface FormProps {
  onClose: () => void;
  onDone: () => Promise<unknown>;
}

/** What was typed into the fields of a form, without those that are empty. */
const typed = (form: HTMLFormElement | null): Record<string, string> =>
  Object.fromEntries(
    [...new FormData(form ?? undefined)].map(([name, value]) => [name, String(value).trim()]).filter(([, v]) => v),
  );

function FlowiseForm({ view, onClose, onDone }: FormProps & { view: ConnectionsView }) {
  const form = useRef<HTMLFormElement>(null);
  const connect = useMutation({
    mutationFn: (over: "" | "same_server" | "force") => {
      const { endpoint = "", api_key = null } = typed(form.current);
      const body = { endpoint, api_key, same_server: over === "same_server", force: over === "force" };
      return dataOf(api.PUT("/connections/flowise", { body }));
    },
    onSuccess: async () => {
      await onDone();
      onClose();
    },
  });
  return (
    <ConnectForm
      form={form}
      title={t("Connect a Flowise")}
      connect={{ ...connect, mutate: () => connect.mutate("") }}
      onClose={onClose}
      instead={
        sessionsAreOpen(connect.error) && (
          <div className="row">
            <button type="button" className="button" onClick={() => connect.mutate("same_server")}>
              {t("It is the same Flowise at another address")}
            </button>
            <button type="button" className="button" onClick={() => connect.mutate("force")}>
              {t("Stop the sessions and connect")}
            </button>
          </div>
        )
      }
    >
      <label className="field">
        {t("Address")}
        <TextInput
          name="endpoint"
          type="url"
          required
          most={500}
          placeholder="http://localhost:3000"
          defaultValue={view.flowise.source === "stored" ? (view.flowise.endpoint ?? "") : ""}
        />
        <small>{t("As the service reaches it, without a path.")}</small>
      </label>
      <Key>{t("Made in Flowise under “API Keys”.")}</Key>
    </ConnectForm>
  );
}

type Provider = "claude" | "openai" | "other";

function ModelForm({ onClose, onDone }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  const [provider, setProvider] = useState<Provider>("claude");
  const connect = useMutation({
    mutationFn: () => {
      const { api_key = null, base_url = null, model = null } = typed(form.current);
      const engine: ConnectModel["engine"] = provider === "claude" ? "claude" : "openai";
      return dataOf(api.PUT("/connections/model", { body: { engine, api_key, base_url, model } }));
    },
    onSuccess: async () => {
      await onDone();
      onClose();
    },
  });
  const other = provider === "other";
  return (
    <ConnectForm form={form} title={t("Connect a model")} connect={connect} onClose={onClose}>
      <p className="quiet">{t("It plans and reviews your flows. The models inside of a flow are set in Flowise.")}</p>
      <label className="field">
        {t("Provider")}
        <select value={provider} onChange={(event) => setProvider(event.target.value as Provider)}>
          <option value="claude">Anthropic</option>
          <option value="openai">OpenAI</option>
          <option value="other">{t("Another one with the API of OpenAI (OpenRouter, Ollama, vLLM)")}</option>
        </select>
      </label>
      {other && (
        <label className="field">
          {t("Address")}
          <TextInput name="base_url" type="url" required most={500} placeholder="http://localhost:11434/v1" />
        </label>
      )}
      <Key required={!other}>{other ? t("A server of your own may need none.") : ""}</Key>
      <label className="field">
        {t("Model")}
        <TextInput
          name="model"
          most={200}
          required={other}
          placeholder={other ? "" : provider === "claude" ? "claude-sonnet-5-5" : "gpt-5.4"}
        />
      </label>
    </ConnectForm>
  );
}

function Key({ required = false, children }: { required?: boolean; children: string }) {
  return (
    <label className="field">
      {t("Key")}
      {/* A spell checker may send what is typed to somebody else. */}
      <TextInput
        name="api_key"
        type="password"
        required={required}
        most={1_000}
        autoComplete="new-password"
        spellCheck={false}
      />
      {children && <small>{children}</small>}
    </label>
  );
}

interface ConnectFormProps {
  form: RefObject<HTMLFormElement | null>;
  title: string;
  connect: { mutate: () => void; isPending: boolean; error: unknown };
  onClose: () => void;
  /** What else can be done after an error. */
  instead?: ReactNode;
  children: ReactNode;
}

function ConnectForm({ form, title, connect, onClose, instead, children }: ConnectFormProps) {
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!connect.isPending) connect.mutate();
  }
  return (
    <form ref={form} method="post" className="stack" autoComplete="off" onSubmit={submit}>
      <h2 id="connect-title">{title}</h2>
      {children}
      <p className="quiet">{t("It is tried first. The key is kept encrypted and never shown again.")}</p>
      <ErrorNote error={connect.error}>{instead}</ErrorNote>
      <div className="actions">
        {/* Not disabled while it is tried: focus stays. */}
        <button type="submit" className="button primary" aria-disabled={connect.isPending}>
          {connect.isPending ? t("Trying the connection…") : t("Test and connect")}
        </button>
        <button type="button" className="button" onClick={onClose}>
          {t("Cancel")}
        </button>
      </div>
    </form>
  );
}
