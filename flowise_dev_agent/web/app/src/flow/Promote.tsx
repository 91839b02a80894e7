/** Copy a flow to another Flowise server: what would be written is checked and shown first. */
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { api, dataOf } from "../api/client";
import { caller } from "../api/queries";
import type { FlowFacts } from "../api/types";
import { t } from "../i18n";
import { FlowPicker } from "../sessions/FlowPicker";
import { newKey } from "../sessions/start";
import { ErrorNote } from "../ui/ErrorNote";
import { FormDialog, useDialog } from "../ui/FormDialog";
import { inWords } from "./difference";

const Findings = lazy(() => import("../session/questions/controls").then((module) => ({ default: module.Findings })));

/** A button for those who may do it, where there is another server. */
export function Promote({ flow, servers }: Omit<Props, "onClose">) {
  const { isOpen, opens, onClosed } = useDialog();
  const { data: person } = useQuery(caller());
  if (!person?.scopes.includes("approve") || servers.length === 0) return null;
  return (
    <>
      <button {...opens} aria-label={`${t("Promote")}: ${flow.name}`}>
        {t("Promote")}
      </button>
      {isOpen && (
        <FormDialog titled="promote-title" onClosed={onClosed}>
          {(close) => <Form flow={flow} servers={servers} onClose={close} />}
        </FormDialog>
      )}
    </>
  );
}

interface Props {
  flow: FlowFacts;
  /** Those that it can go to. */
  servers: string[];
  onClose: () => void;
}

function Form({ flow, servers, onClose }: Props) {
  const [target, setTarget] = useState(servers[0] ?? "");
  const [replaces, setReplaces] = useState(false);
  const [chosen, setChosen] = useState<{ id: string; name: string } | null>(null);
  const onto = replaces ? chosen : null;
  const ready = !replaces || chosen !== null;
  const call = (dry_run: boolean, key?: string) =>
    dataOf(
      api.POST("/flows/{chatflow_id}/promote", {
        params: { path: { chatflow_id: flow.id }, ...(key && { header: { "idempotency-key": key } }) },
        body: { source: flow.instance, target, name: null, target_chatflow_id: onto?.id ?? null, dry_run },
      }),
    );
  const check = useQuery({
    queryKey: ["promote", flow.instance, flow.id, target, onto?.id ?? null],
    queryFn: () => call(true),
    enabled: ready,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 0,
  });
  // The key changes only with where it goes: pressing twice writes once.
  const attempt = useRef({ to: "", key: "" });
  const write = useMutation({
    mutationFn: () => {
      const to = `${target} ${onto?.id}`;
      if (attempt.current.to !== to) attempt.current = { to, key: newKey() };
      return call(false, attempt.current.key);
    },
  });
  const done = write.data;
  const end = useRef<HTMLButtonElement>(null);
  // The button that was pressed is gone.
  useEffect(() => {
    if (done) end.current?.focus();
  }, [done]);
  const { data, error, isFetching } = check;
  return (
    <div className="stack">
      <h2 id="promote-title">{t("Promote “{{name}}” to another server", { name: flow.name })}</h2>
      {done ? (
        <div role="status" className="note ok">
          <p>
            {done.created
              ? t("A new flow was written to {{server}} and read back.", { server: done.instance })
              : t("Written to {{server}} and read back. What the flow held before is kept as a version.", {
                  server: done.instance,
                })}
          </p>
          <p className="row">
            {done.chatflow_id && (
              <Link href={`/f/${done.chatflow_id}/${done.instance}`}>{t("Show the flow there")}</Link>
            )}
            {done.session_id && <Link href={`/s/${done.session_id}`}>{t("What was written")}</Link>}
          </p>
        </div>
      ) : (
        <>
          <label className="field">
            {t("Flowise server")}
            <select
              value={target}
              onChange={(event) => {
                setChosen(null);
                setTarget(event.target.value);
              }}
            >
              {servers.map((id) => (
                <option key={id}>{id}</option>
              ))}
            </select>
          </label>
          <fieldset className="stack tight">
            <legend>{t("On that server")}</legend>
            {[false, true].map((way) => (
              <label key={String(way)} className="check">
                <input type="radio" name="becomes" checked={replaces === way} onChange={() => setReplaces(way)} />
                {way ? t("Replace a flow") : t("Create a new flow")}
              </label>
            ))}
          </fieldset>
          {replaces && (
            <FlowPicker instance={target} chosen={chosen} onChoose={setChosen} label={t("Flow to replace")} open />
          )}
          {isFetching && <p className="quiet">{t("Checking what would be written…")}</p>}
          {data && ready && !error && !isFetching && (
            <section className="stack tight" aria-labelledby="promote-what">
              <h3 id="promote-what" className="small-title">
                {t("What would be written")}
              </h3>
              {data.difference?.summary && <p>{inWords(data.difference)}</p>}
              {data.credentials.map((one) => (
                <p key={`${one.type} ${one.name}`}>
                  <small>
                    {one.name === one.target_name
                      ? t("Credential “{{name}}”: the one of the same name there", { name: one.name })
                      : t("Credential “{{name}}” becomes “{{other}}”", { name: one.name, other: one.target_name })}
                  </small>
                </p>
              ))}
              {data.left_out.length > 0 && (
                <p>{t("Not written: {{names}}. The flow keeps its own.", { names: data.left_out.join(", ") })}</p>
              )}
              <Suspense>
                <Findings findings={data.findings} />
              </Suspense>
            </section>
          )}
          <ErrorNote error={write.error ?? error} />
        </>
      )}
      <div className="actions">
        {!done && (
          <button
            type="button"
            className="button primary"
            disabled={!ready || write.isPending || isFetching || Boolean(error) || !data?.valid}
            onClick={() => write.mutate()}
          >
            {write.isPending ? t("Writing to Flowise…") : t("Promote")}
          </button>
        )}
        <button ref={end} type="button" className="button" onClick={onClose}>
          {t("Close")}
        </button>
      </div>
    </div>
  );
}
