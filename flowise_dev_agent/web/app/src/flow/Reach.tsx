/** How people reach a flow: its chat, a web site, a program; and the settings that decide it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { api, dataOf } from "../api/client";
import { flowReach } from "../api/queries";
import type { FlowReach, ReachChange } from "../api/types";
import { t } from "../i18n";
import { CopyButton } from "../ui/CopyButton";
import { ErrorNote } from "../ui/ErrorNote";
import { FormDialog } from "../ui/FormDialog";
import { Tabs } from "../ui/Tabs";
import { TextInput } from "../ui/TextInput";

interface Props {
  chatflowId: string;
  instance: string | undefined;
}

/** Of a starter question and of a web site. */
const MOST_CHARACTERS = 200;
const MOST_STARTERS = 10;

/** Writes another reach, if the flow is as it was shown: a session of its own, read back after the write. */
function useReach({ chatflowId, instance }: Props, etag: string | undefined) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (reach: ReachChange) =>
      dataOf(
        api.POST("/flows/{chatflow_id}/apply", {
          params: { path: { chatflow_id: chatflowId }, query: { instance, wait: 60 }, header: { "if-match": etag } },
          body: { dry_run: false, reach },
        }),
      ),
    onSuccess: () => {
      for (const key of ["reach", "flow", "flows"]) void queries.invalidateQueries({ queryKey: [key] });
    },
  });
}

export function ReachDialog({ onClosed, ...flow }: Props & { onClosed: () => void }) {
  const { data, error } = useQuery(flowReach(flow.chatflowId, flow.instance));
  const change = useReach(flow, data?.etag);
  const shown = { reach: data as FlowReach, change: change.mutate, busy: change.isPending };
  return (
    <FormDialog titled="reach-title" onClosed={onClosed}>
      {(close) => (
        <div className="stack reach">
          <h2 id="reach-title">{t("Give it to people")}</h2>
          {!data && !error && <p className="quiet">{t("Loading the flow…")}</p>}
          {data && (
            <>
              <State {...shown} />
              <Tabs
                label={t("Ways to use it")}
                tabs={[
                  { name: t("Link"), content: <ByLink {...shown} /> },
                  { name: t("Web site"), content: <OnSite reach={data} id={flow.chatflowId} /> },
                  { name: t("Program"), content: <ByProgram reach={data} /> },
                  { name: t("Settings"), content: <Settings key={data.etag} {...shown} saved={change.isSuccess} /> },
                ]}
              />
            </>
          )}
          <ErrorNote error={error ?? change.error} />
          <div className="actions">
            <button type="button" className="button" onClick={close}>
              {t("Close")}
            </button>
          </div>
        </div>
      )}
    </FormDialog>
  );
}

interface Shown {
  reach: FlowReach;
  change: (reach: ReachChange) => void;
  busy: boolean;
}

const STARTS: Record<FlowReach["starts"], string> = {
  chat: "",
  form: "It begins with a form: whoever opens the chat fills it in.",
  schedule: "It starts by itself, by its schedule. Nobody has to open a chat.",
  webhook: "Another program starts it by its webhook. The address is in Flowise.",
};

function State({ reach, change, busy }: Shown) {
  return (
    <div className="stack tight">
      <p className="row">
        <span className={reach.deployed ? "badge ok" : "badge"}>
          {reach.deployed ? t("deployed") : t("not deployed")}
        </span>
        <button
          type="button"
          className="button small"
          disabled={busy}
          onClick={() => change({ deployed: !reach.deployed })}
        >
          {reach.deployed ? t("Undeploy") : t("Deploy")}
        </button>
      </p>
      {STARTS[reach.starts] && <p>{t(STARTS[reach.starts])}</p>}
      {reach.mcp && <p>{t("Flowise also offers it to other agents, as an MCP server.")}</p>}
    </div>
  );
}

/** The chat page of Flowise itself, as customers see it. */
function ByLink({ reach, change, busy }: Shown) {
  if (!reach.chat_url) return <Unknown />;
  return (
    <div className="stack tight">
      <label className="field">
        {t("Address of the chat")}
        <input readOnly value={reach.chat_url} />
      </label>
      <div className="row">
        <CopyButton text={() => reach.chat_url ?? ""} label={t("Copy the link")} />
        <a className="button" href={reach.chat_url} target="_blank" rel="noopener noreferrer">
          {t("Open it as a customer")}
        </a>
      </div>
      {reach.public ? (
        <p className="row">
          {t("Everyone who has the link can chat.")}
          <button type="button" className="button small" disabled={busy} onClick={() => change({ public: false })}>
            {t("Close it to strangers")}
          </button>
        </p>
      ) : (
        <p className="note warn">
          {t("Only people with an account in this Flowise can open it.")}
          <span>
            <button type="button" className="button small" disabled={busy} onClick={() => change({ public: true })}>
              {t("Let everyone with the link chat")}
            </button>
          </span>
        </p>
      )}
    </div>
  );
}

const Unknown = () => <p className="quiet">{t("The address of this Flowise is not known here.")}</p>;

/** The server that an address is on, with the path before Flowise's own. */
const serverOf = (chat: string): string => chat.replace(/\/chatbot\/[^/]*$/, "");

/** What a web site needs, as Flowise's own dialog gives it. */
export const snippetOf = (server: string, id: string): string => `<script type="module">
  import Chatbot from "https://cdn.jsdelivr.net/npm/flowise-embed/dist/web.js"
  Chatbot.init({
    chatflowid: "${id}",
    apiHost: "${server}",
  })
</script>`;

function OnSite({ reach, id }: { reach: FlowReach; id: string }) {
  if (!reach.chat_url) return <Unknown />;
  const snippet = snippetOf(serverOf(reach.chat_url), id);
  return (
    <div className="stack tight">
      <p>{t("Paste this before the end of the page, and a chat bubble appears in its corner.")}</p>
      <Code text={snippet} />
      <p className="quiet">
        {reach.origins.length > 0
          ? t("Only these web sites may show it: {{sites}}.", { sites: reach.origins.join(", ") })
          : t("Every web site may show it. Under “Settings” you can say which ones.")}
      </p>
      {reach.needs_key && <p className="note warn">{t("It asks for a key, which a web site cannot keep secret.")}</p>}
    </div>
  );
}

const LANGUAGES = { curl: "curl", python: "Python", javascript: "JavaScript" };

/** A call of the flow, with the key where it asks for one. */
export function callOf(language: keyof typeof LANGUAGES, url: string, needsKey: boolean): string {
  if (language === "curl")
    return [
      `curl ${url} \\`,
      `  -H "Content-Type: application/json" \\`,
      ...(needsKey ? [`  -H "Authorization: Bearer $FLOWISE_KEY" \\`] : []),
      `  -d '{"question": "Hello"}'`,
    ].join("\n");
  if (language === "python")
    return [
      ...(needsKey ? ["import os", ""] : []),
      "import requests",
      "",
      "answer = requests.post(",
      `    "${url}",`,
      ...(needsKey ? [`    headers={"Authorization": f"Bearer {os.environ['FLOWISE_KEY']}"},`] : []),
      `    json={"question": "Hello"},`,
      "    timeout=60,",
      ")",
      "answer.raise_for_status()",
      `print(answer.json()["text"])`,
    ].join("\n");
  return [
    `const answer = await fetch("${url}", {`,
    `  method: "POST",`,
    `  headers: {`,
    `    "Content-Type": "application/json",`,
    ...(needsKey ? ['    Authorization: "Bearer " + process.env.FLOWISE_KEY,'] : []),
    "  },",
    `  body: JSON.stringify({ question: "Hello" }),`,
    "})",
    "console.log((await answer.json()).text)",
  ].join("\n");
}

function ByProgram({ reach }: { reach: FlowReach }) {
  const [language, setLanguage] = useState<keyof typeof LANGUAGES>("curl");
  if (!reach.api_url) return <Unknown />;
  return (
    <div className="stack tight">
      <label className="field">
        {t("Language")}
        <select value={language} onChange={(event) => setLanguage(event.target.value as keyof typeof LANGUAGES)}>
          {Object.entries(LANGUAGES).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Code text={callOf(language, reach.api_url, reach.needs_key)} />
      <p className="quiet">
        {reach.needs_key
          ? t("It answers only with its key, which is in Flowise under “API Keys”.")
          : t("It answers without a key. Who may use it can be narrowed in Flowise.")}
      </p>
    </div>
  );
}

function Code({ text }: { text: string }) {
  return (
    <>
      <pre>{text}</pre>
      <CopyButton text={() => text} label={t("Copy")} />
    </>
  );
}

const lines = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** What differs from the flow: nothing else is sent. */
export function changeOf(reach: FlowReach, wanted: Pick<FlowReach, "starters" | "leads" | "origins" | "limit">) {
  const changed = Object.entries(wanted).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(reach[name as keyof typeof wanted]),
  );
  return Object.fromEntries(changed.map(([name, value]) => [name, value ?? false])) as ReachChange;
}

function Settings({ reach, change, busy, saved }: Shown & { saved: boolean }) {
  const id = useId();
  const [problem, setProblem] = useState("");
  const [limited, setLimited] = useState(reach.limit !== null);
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "");
    const starters = lines(text("starters"));
    const origins = lines(text("origins")).map((line) => line.replace(/\/$/, ""));
    const long = [...starters, ...origins].find((line) => line.length > MOST_CHARACTERS);
    const wrong = origins.find((line) => !/^https?:\/\/[^/\s?#@]+$/.test(line));
    const said =
      starters.length > MOST_STARTERS
        ? t("At most {{number}} starter questions.", { number: MOST_STARTERS })
        : long
          ? t("At most {{number}} characters in a line.", { number: MOST_CHARACTERS })
          : wrong
            ? t("“{{text}}” is no address such as https://shop.example.", { text: wrong })
            : "";
    setProblem(said);
    if (said) return;
    const limit = limited
      ? { messages: Number(text("messages")), seconds: 60 * Number(text("minutes")), told: text("told").trim() }
      : null;
    const wanted = changeOf(reach, { starters, leads: form.has("leads"), origins, limit });
    if (Object.keys(wanted).length > 0) change(wanted);
  }
  return (
    <form className="stack" onSubmit={submit}>
      <label className="field">
        {t("Starter questions")}
        <textarea name="starters" rows={3} defaultValue={reach.starters.join("\n")} />
        <small>{t("One in each line. The chat offers them before the first message.")}</small>
      </label>
      <label className="check">
        <input type="checkbox" name="leads" defaultChecked={reach.leads} />
        {t("Ask for name and e-mail address first")}
      </label>
      <label className="field">
        {t("Web sites that may show it")}
        <textarea name="origins" rows={2} defaultValue={reach.origins.join("\n")} />
        <small>{t("One address in each line, such as https://shop.example. Empty: every web site.")}</small>
      </label>
      <label className="check">
        <input type="checkbox" checked={limited} onChange={(event) => setLimited(event.target.checked)} />
        {t("Limit the messages of a visitor")}
      </label>
      {limited && (
        <div className="stack tight">
          <div className="row">
            <label className="field grow">
              {t("Messages")}
              <input
                name="messages"
                type="number"
                min={1}
                max={1_000_000}
                required
                defaultValue={reach.limit?.messages ?? 20}
              />
            </label>
            <label className="field grow">
              {t("in minutes")}
              <input
                name="minutes"
                type="number"
                min={1}
                max={100_000}
                required
                defaultValue={Math.max(1, Math.round((reach.limit?.seconds ?? 60) / 60))}
              />
            </label>
          </div>
          <label className="field">
            {t("What the chat says then")}
            <TextInput
              name="told"
              most={1_000}
              required
              defaultValue={reach.limit?.told ?? t("Please wait a moment before you write again.")}
            />
          </label>
        </div>
      )}
      <div className="row">
        <button type="submit" className="button primary" disabled={busy} aria-describedby={id}>
          {busy ? t("Saving…") : t("Save")}
        </button>
        <span id={id} role="status" className={problem ? "problem" : "quiet"}>
          {problem || (saved && t("Saved"))}
        </span>
      </div>
    </form>
  );
}
