import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { getHealth } from "../api/health";
import { startSession } from "../api/sessions";
import { ErrorNote } from "../ui/ErrorNote";
import { FlowPicker } from "./FlowPicker";
import { type Draft, EMPTY, EXAMPLES, requestOf } from "./start";

/** What should be built or changed, with the options that a session has. */
export function NewSession() {
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [, go] = useLocation();
  const field = useRef<HTMLTextAreaElement>(null);
  // The same key as long as the request is the same: pressing twice starts one session.
  const attempt = useRef({ body: "", key: "" });
  const health = useQuery({ queryKey: ["health"], queryFn: getHealth, staleTime: 30_000 });
  const instances = Object.keys(health.data?.flowise ?? {});
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
          Say it in your own words. You see a plan before anything is built, and the tests before anything goes live.
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
        <span className="quiet">For example:</span>
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
        <HealthLine health={health.data} error={health.error} />
      </div>
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
        What to do
        <select
          value={draft.operation}
          onChange={(event) => set({ operation: event.target.value as Draft["operation"] })}
        >
          <option value="auto">As the words say</option>
          <option value="create">Create a new flow</option>
          <option value="update">Change a flow</option>
          <option value="copy">Copy a flow and change the copy</option>
        </select>
      </label>
      {instances.length > 1 && (
        <label className="field">
          Flowise server
          <select value={draft.instance} onChange={(event) => set({ instance: event.target.value, target: null })}>
            <option value="">The default one</option>
            {instances.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        </label>
      )}
      {changes && <FlowPicker instance={draft.instance} chosen={draft.target} onChoose={(target) => set({ target })} />}
      <label className="field">
        How it is written
        <select
          value={draft.writeMode}
          onChange={(event) => set({ writeMode: event.target.value as Draft["writeMode"] })}
        >
          <option value="">Changes on a draft first, new flows at once</option>
          <option value="staged">On a draft first</option>
          <option value="direct">At once</option>
        </select>
      </label>
      <label className="field">
        Times each test question must pass
        <input
          type="number"
          min={1}
          max={10}
          value={draft.trials}
          onChange={(event) => set({ trials: Math.min(10, Math.max(1, event.target.valueAsNumber || 1)) })}
        />
      </label>
      <label className="field">
        Ceiling in tokens
        <input
          type="number"
          min={1}
          value={draft.tokens}
          placeholder="as set on the server"
          onChange={(event) => set({ tokens: event.target.value })}
        />
      </label>
      <label className="field">
        Ceiling in dollars
        <input
          type="number"
          min={0}
          step="any"
          value={draft.usd}
          placeholder="as set on the server"
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
          Show me the change before it is written
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={draft.skipClarification}
            onChange={(event) => set({ skipClarification: event.target.checked })}
          />
          Do not ask back; decide for me
        </label>
      </div>
    </div>
  );
}

function HealthLine({ health, error }: { health: Awaited<ReturnType<typeof getHealth>> | undefined; error: unknown }) {
  if (error) return <small className="problem">The service's health is not known at the moment.</small>;
  if (!health) return null;
  const down = Object.entries(health.flowise).filter(([, one]) => one.state !== "ok");
  return (
    <small>
      {health.reasoning.engine === "deterministic"
        ? "Plans by rules, without a model"
        : `Plans by ${health.reasoning.model}`}
      {health.model_stand_in && ". The models in Flowise are a local stand-in"}
      {down.length > 0 && (
        <span className="problem"> Flowise does not answer: {down.map(([id]) => id).join(", ")}.</span>
      )}
    </small>
  );
}

// crypto.randomUUID exists on https and localhost only.
const newKey = (): string =>
  `page-${Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("")}`;
