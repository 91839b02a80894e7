import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { health, info } from "../api/queries";
import { startSession } from "../api/sessions";
import type { HealthView } from "../api/types";
import { ErrorNote } from "../ui/ErrorNote";
import { FlowPicker } from "./FlowPicker";
import { type Draft, EMPTY, EXAMPLES, newKey, requestOf } from "./start";

/** The form for a new session: the requirement and the options. */
export function NewSession() {
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [, go] = useLocation();
  const field = useRef<HTMLTextAreaElement>(null);
  // The key changes only with the request: pressing twice starts one session.
  const attempt = useRef({ body: "", key: "" });
  const service = useQuery(health());
  const offer = useQuery(info()).data?.offer;
  const instances = Object.keys(service.data?.flowise ?? {});
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }));

  const start = useMutation({
    mutationFn: () => {
      const body = requestOf(draft);
      const text = JSON.stringify(body);
      if (attempt.current.body !== text) attempt.current = { body: text, key: newKey() };
      return startSession(body, attempt.current.key);
    },
    onSuccess: (session) => go(`/s/${session.thread_id}`),
  });

  function submit(event: FormEvent) {
    event.preventDefault();
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
          <label htmlFor="requirement">What should the chatbot do?</label>
        </h1>
        <p className="quiet">
          Use your own words. You review a plan before anything is built, and test results before anything goes live.
        </p>
      </div>
      <textarea
        id="requirement"
        ref={field}
        rows={4}
        maxLength={32_000}
        value={draft.requirement}
        onChange={(event) => set({ requirement: event.target.value })}
      />
      <div className="row">
        <span className="quiet">Examples:</span>
        {EXAMPLES.map((example) => (
          <button
            key={example.title}
            type="button"
            className="chip"
            onClick={() => {
              set({ requirement: example.requirement });
              field.current?.focus();
            }}
          >
            {example.title}
          </button>
        ))}
      </div>
      <details>
        <summary>Options</summary>
        <Options draft={draft} set={set} instances={instances} />
      </details>
      <div className="row apart">
        <button type="submit" className="button primary large" disabled={start.isPending}>
          {start.isPending ? "Starting the session…" : "Start"}
        </button>
        <Link href="/build" className="button">
          Build step by step
        </Link>
        <HealthLine health={service.data} error={service.error} />
      </div>
      {offer && <small>{offer}</small>}
      <ErrorNote error={start.error} />
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
        Operation
        <select
          value={draft.operation}
          onChange={(event) => set({ operation: event.target.value as Draft["operation"] })}
        >
          <option value="auto">As the requirement says</option>
          <option value="create">Create a new flow</option>
          <option value="update">Change a flow</option>
          <option value="copy">Copy a flow and change the copy</option>
        </select>
      </label>
      {instances.length > 1 && (
        <label className="field">
          Flowise server
          <select value={draft.instance} onChange={(event) => set({ instance: event.target.value, target: null })}>
            <option value="">Default</option>
            {instances.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        </label>
      )}
      {changes && <FlowPicker instance={draft.instance} chosen={draft.target} onChoose={(target) => set({ target })} />}
      <label className="field">
        Write mode
        <select
          value={draft.writeMode}
          onChange={(event) => set({ writeMode: event.target.value as Draft["writeMode"] })}
        >
          <option value="">Default: existing flows through a draft, new flows directly</option>
          <option value="staged">Staged: through a draft</option>
          <option value="direct">Direct</option>
        </select>
      </label>
      <label className="field">
        Trials per test question, all must pass
        <input
          type="number"
          min={1}
          max={10}
          value={draft.trials}
          onChange={(event) => set({ trials: Math.min(10, Math.max(1, event.target.valueAsNumber || 1)) })}
        />
      </label>
      <label className="field">
        Token limit
        <input
          type="number"
          min={1}
          value={draft.tokens}
          placeholder="server default"
          onChange={(event) => set({ tokens: event.target.value })}
        />
      </label>
      <label className="field">
        Cost limit in USD
        <input
          type="number"
          min={0}
          step="any"
          value={draft.usd}
          placeholder="server default"
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
          Let me review the change before it is written
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={draft.skipClarification}
            onChange={(event) => set({ skipClarification: event.target.checked })}
          />
          Do not ask questions; decide for me
        </label>
      </div>
    </div>
  );
}

function HealthLine({ health, error }: { health: HealthView | undefined; error: unknown }) {
  if (error) return <small className="problem">Service health is unknown.</small>;
  if (!health) return null;
  const down = Object.entries(health.flowise).filter(([, one]) => one.state !== "ok");
  return (
    <small>
      {health.reasoning.engine === "deterministic"
        ? "Plans with rules, without a model"
        : `Plans with ${health.reasoning.model}`}
      {health.model_stand_in && ". Flowise uses a local stand-in model"}
      {down.length > 0 && (
        <span className="problem">
          {down.length === 1 ? " The Flowise server " : " The Flowise servers "}
          {down.map(([id]) => `“${id}”`).join(", ")} {down.length === 1 ? "does" : "do"} not respond. Check the address
          and the key under <Link href="/instances">Instances</Link>.
        </span>
      )}
    </small>
  );
}
