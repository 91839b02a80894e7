import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, type KeyboardEvent, lazy, Suspense, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { caller, connections, health, info } from "../api/queries";
import { startSession } from "../api/sessions";
import type { HealthView } from "../api/types";
import { Sketch } from "../flow/FlowThumbnail";
import { t } from "../i18n";
import { wordedList } from "../i18n/texts";
import { ErrorNote } from "../ui/ErrorNote";
import { ExpectedCost } from "../ui/ExpectedCost";
import { FileDrop, upload } from "../ui/files";
import { tooLong } from "../ui/tooLong";
import { FlowPicker } from "./FlowPicker";
import { type Draft, EXAMPLES, type Example, newKey, requestOf } from "./start";

const FirstRun = lazy(() => import("./FirstRun").then((module) => ({ default: module.FirstRun })));

/** Examples beside a list of flows. */
const SHORT_LIST = 4;

interface Props {
  draft: Draft;
  /** Keeps what is typed over a reload; null when it was sent. */
  keep: (draft: Draft | null) => void;
  /** Nothing was ever built here: the examples are shown in full. */
  first: boolean;
  /** What the form depends on is known: until then only its field is shown. */
  arrived: boolean;
}

/** The form for a new session: the requirement and the options. */
export function NewSession({ draft, keep, first, arrived }: Props) {
  const [, go] = useLocation();
  const field = useRef<HTMLTextAreaElement>(null);
  // The key changes only with the request: pressing twice starts one session.
  const attempt = useRef({ body: "", key: "" });
  const service = useQuery(health());
  const instances = Object.keys(service.data?.flowise ?? {});
  const set = (change: Partial<Draft>) => keep({ ...draft, ...change });
  const away = awayOf(service.data, draft.instance);
  const connected = useQuery({ ...connections(), enabled: away !== "" });
  // Somebody who has just connected the one goes on with the other.
  const [begun, setBegun] = useState(false);
  if (away && !begun && connected.data && connected.data.flowise.source !== "environment") setBegun(true);

  const start = useMutation({
    mutationFn: () => {
      const body = requestOf(draft);
      const text = JSON.stringify(body);
      if (attempt.current.body !== text) attempt.current = { body: text, key: newKey() };
      return startSession(body, attempt.current.key);
    },
    onSuccess: (session) => {
      keep(null);
      go(`/s/${session.thread_id}`);
    },
  });

  const take = useMutation({
    mutationFn: async ({ file }: Example) => file && (await upload(new File([file.text], file.name))),
    onSuccess: (file, { requirement }) => {
      set({ requirement, ...(file && { files: [file] }) });
      field.current?.focus();
    },
  });

  function submit(event: FormEvent) {
    event.preventDefault();
    if (away || tooLong(draft.requirement)) return;
    if (draft.requirement.trim()) start.mutate();
    else field.current?.focus();
  }
  function keyed(event: KeyboardEvent<HTMLFormElement>) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  }

  return (
    <form className="card stack composer" onSubmit={submit} onKeyDown={keyed}>
      <div>
        <h1>
          <label htmlFor="requirement">{t("What should the chatbot do?")}</label>
        </h1>
        <p className="quiet">
          {t(
            "Use your own words. You review a plan before anything is built, and test results before anything goes live.",
          )}
        </p>
      </div>
      <FileDrop files={draft.files} onChange={(files) => set({ files })}>
        <textarea
          id="requirement"
          ref={field}
          rows={2}
          value={draft.requirement}
          onChange={(event) => set({ requirement: event.target.value })}
        />
      </FileDrop>
      <p role="alert" className="problem too-long">
        {tooLong(draft.requirement)}
      </p>
      <div className="stack" hidden={!arrived}>
        {draft.target && (
          <p className="row">
            {draft.operation === "copy" ? t("A copy of") : t("A change of")}
            <span className="badge live">{draft.target.name}</span>
            <button type="button" className="button plain" onClick={() => set({ target: null, operation: "auto" })}>
              {t("A new flow instead")}
            </button>
          </p>
        )}
        <div className="row">
          <button type="submit" className="button primary large" disabled={start.isPending || away !== ""}>
            {start.isPending ? t("Starting the session…") : t("Start")}
          </button>
          <Link href="/new" className="button">
            {t("Build by hand")}
          </Link>
          <ExpectedCost kind={draft.operation === "auto" ? undefined : draft.operation} />
          <span className="push">{!begun && <HealthLine health={service.data} error={service.error} />}</span>
        </div>
        {begun && (
          <Suspense>
            <FirstRun />
          </Suspense>
        )}
        {away && !begun && !connected.isPending && (
          <div role="status" className="note warn">
            <p>
              {service.data?.flowise[away]?.error?.code === "flowise_auth"
                ? t("The Flowise server “{{name}}” refuses the key that this service has for it.", { name: away })
                : t("The Flowise server “{{name}}” does not respond. You can start when it is back.", { name: away })}
            </p>
            <p className="row">
              <button type="button" className="button" disabled={service.isFetching} onClick={() => service.refetch()}>
                {t("Check again")}
              </button>
              <Link href="/instances">{t("Address and key under Instances")}</Link>
            </p>
          </div>
        )}
        <ErrorNote error={start.error ?? take.error} />
        <ul className="plain examples" aria-label={t("Examples")}>
          {EXAMPLES.slice(0, first ? EXAMPLES.length : SHORT_LIST).map((example) => (
            <li key={example.title}>
              <button type="button" className="example" onClick={() => take.mutate(example)}>
                <span aria-hidden="true">
                  <Sketch categories={example.nodes} />
                </span>
                <span>{t(example.title)}</span>
                <small>{t(example.needs)}</small>
              </button>
            </li>
          ))}
        </ul>
        <details>
          <summary>{t("Options")}</summary>
          <Options draft={draft} set={set} instances={instances} />
        </details>
      </div>
    </form>
  );
}

interface OptionsProps {
  draft: Draft;
  set: (change: Partial<Draft>) => void;
  instances: string[];
}

function Options({ draft, set, instances }: OptionsProps) {
  const changes = draft.operation !== "create";
  return (
    <div className="options">
      <label className="field">
        {t("Operation")}
        <select
          value={draft.operation}
          onChange={(event) => set({ operation: event.target.value as Draft["operation"] })}
        >
          <option value="auto">{t("As the requirement says")}</option>
          <option value="create">{t("Create a new flow")}</option>
          <option value="update">{t("Change a flow")}</option>
          <option value="copy">{t("Copy a flow and change the copy")}</option>
        </select>
      </label>
      {instances.length > 1 && (
        <label className="field">
          {t("Flowise server")}
          <select value={draft.instance} onChange={(event) => set({ instance: event.target.value, target: null })}>
            <option value="">{t("Default")}</option>
            {instances.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        </label>
      )}
      {changes && (
        <FlowPicker
          instance={draft.instance}
          chosen={draft.target}
          onChoose={(target) => set({ target })}
          open={draft.operation !== "auto"}
        />
      )}
      <label className="field">
        {t("Write mode")}
        <select
          value={draft.writeMode}
          onChange={(event) => set({ writeMode: event.target.value as Draft["writeMode"] })}
        >
          <option value="">{t("Default: existing flows through a draft, new flows directly")}</option>
          <option value="staged">{t("Staged: through a draft")}</option>
          <option value="direct">{t("Direct")}</option>
        </select>
      </label>
      <label className="field">
        {t("Trials per test question, all must pass")}
        <input
          type="number"
          min={1}
          max={10}
          value={draft.trials}
          onChange={(event) => set({ trials: Math.min(10, Math.max(1, event.target.valueAsNumber || 1)) })}
        />
      </label>
      <label className="field">
        {t("Token limit")}
        <input
          type="number"
          min={1}
          value={draft.tokens}
          placeholder={t("server default")}
          onChange={(event) => set({ tokens: event.target.value })}
        />
      </label>
      <label className="field">
        {t("Cost limit in USD")}
        <input
          type="number"
          min={0}
          step="any"
          value={draft.usd}
          placeholder={t("server default")}
          onChange={(event) => set({ usd: event.target.value })}
        />
      </label>
      <div className="stack tight">
        <label className="check">
          <input
            type="checkbox"
            checked={draft.reviewPatch}
            onChange={(event) => set({ reviewPatch: event.target.checked })}
          />
          {t("Let me review the change before it is written")}
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={draft.skipClarification}
            onChange={(event) => set({ skipClarification: event.target.checked })}
          />
          {t("Do not ask questions; decide for me")}
        </label>
      </div>
    </div>
  );
}

/** The Flowise server that the session would use, when it does not respond; else empty. */
function awayOf(health: HealthView | undefined, instance: string): string {
  const servers = Object.entries(health?.flowise ?? {});
  const down = servers.filter(([id, one]) => one.state !== "ok" && (!instance || id === instance));
  return instance || down.length === servers.length ? (down[0]?.[0] ?? "") : "";
}

function HealthLine({ health, error }: { health: HealthView | undefined; error: unknown }) {
  const models = useQuery(info()).data?.models;
  const bare = health?.reasoning.engine === "deterministic";
  const admin = useQuery(caller()).data?.scopes.includes("admin") ?? false;
  const connected = useQuery({ ...connections(), enabled: bare && admin }).data;
  if (error) return <small className="problem">{t("Service health is unknown.")}</small>;
  if (!health) return null;
  const model = models?.find((one) => one.model === health.reasoning.model);
  const lacks = model ? wordedList(model, "lacks") : [];
  return (
    <small>
      {bare ? (
        <>
          {t("Without a model your words choose one of the ready-made flows below. That is free.")}
          {admin && connected && connected.model.source !== "environment" && (
            <>
              {" · "}
              <Link href="/instances">{t("Connect a model")}</Link>
            </>
          )}
        </>
      ) : (
        <>
          {t("Plans with {{model}}", { model: health.reasoning.model ?? "" })}
          {lacks.length > 0 && (
            <>
              {" · "}
              <Link href="/instances" title={lacks.join(" ")}>
                {t("Limits of the model")}
              </Link>
            </>
          )}
        </>
      )}
      {health.model_stand_in && `. ${t("Flowise uses a local stand-in model")}`}
    </small>
  );
}
