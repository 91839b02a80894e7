/** The links that show a session, or the history of a flow, to people without a key. */
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { api, dataOf } from "../api/client";
import { ROOT } from "../api/early";
import type { MadeShare, NewShare, ShareView } from "../api/types";
import { t } from "../i18n";
import { CopyButton } from "../ui/CopyButton";
import { ErrorNote } from "../ui/ErrorNote";
import { FormDialog } from "../ui/FormDialog";
import { day, plural } from "../ui/format";
import "./share.css";

/** Days; the last one is the longest that the service allows. */
const CHOICES = [1, 7, 30, 90];
const DAY_MS = 86_400_000;

interface Props {
  subject: NewShare["subject"];
  id: string;
  onClosed: () => void;
}

const links = (subject: NewShare["subject"], id: string) =>
  queryOptions({
    queryKey: ["shares", subject, id],
    queryFn: ({ signal }) => dataOf(api.GET("/shares", { params: { query: { [subject]: id } }, signal })),
    // Whether a link was opened is asked at each look.
    staleTime: 0,
  });

export function ShareDialog({ subject, id, onClosed }: Props) {
  const queries = useQueryClient();
  const [days, setDays] = useState(7);
  const found = useQuery(links(subject, id));
  const open = found.data?.shares.filter((one) => one.active) ?? [];
  const make = useMutation({
    mutationFn: () => dataOf(api.POST("/shares", { body: { subject, id, days } })),
    onSuccess: () => queries.invalidateQueries(links(subject, id)),
  });
  return (
    <FormDialog titled="share-title" onClosed={onClosed}>
      {(close) => (
        <div className="stack share">
          <h2 id="share-title">{subject === "flow" ? t("Share the history of this flow") : t("Share this session")}</h2>
          <p className="quiet">
            {t(
              "Whoever has the link reads the conversation and sees plan, picture and versions, without names, keys and credentials. Nothing can be changed with it.",
            )}
          </p>
          {make.data ? (
            <Made key={make.data.id} made={make.data} />
          ) : (
            <form
              className="row"
              onSubmit={(event: FormEvent) => {
                event.preventDefault();
                make.mutate();
              }}
            >
              <label className="field">
                {t("It opens until")}
                <select value={days} onChange={(event) => setDays(Number(event.target.value))}>
                  {CHOICES.map((choice) => (
                    <option key={choice} value={choice}>
                      {day(new Date(Date.now() + choice * DAY_MS).toISOString())} ({plural(choice, "day")})
                    </option>
                  ))}
                </select>
              </label>
              <button type="submit" className="button primary" disabled={make.isPending}>
                {t("Create the link")}
              </button>
            </form>
          )}
          <ErrorNote error={make.error ?? found.error} />
          {open.length > 0 && (
            <section className="stack tight" aria-labelledby="share-list">
              <h3 id="share-list">{t("Open links")}</h3>
              <ul className="plain stack tight">
                {open.map((one) => (
                  <OpenLink
                    key={one.id}
                    share={one}
                    onRevoked={() => {
                      if (make.data?.id === one.id) make.reset();
                      return queries.invalidateQueries(links(subject, id));
                    }}
                  />
                ))}
              </ul>
            </section>
          )}
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

/** The new link, which is shown only once. */
function Made({ made }: { made: MadeShare }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <div className="stack tight">
      <label className="field">
        {t("The link")}
        <input ref={field} readOnly value={made.link.startsWith("/") ? ROOT + made.link : made.link} />
        <small>{t("It is shown only now. It opens until {{date}}.", { date: day(made.ends_at) })}</small>
      </label>
      <CopyButton text={() => field.current?.value ?? ""} label={t("Copy the link")} className="button primary" />
    </div>
  );
}

function OpenLink({ share, onRevoked }: { share: ShareView; onRevoked: () => Promise<void> }) {
  const revoke = useMutation({
    mutationFn: () => api.DELETE("/shares/{share_id}", { params: { path: { share_id: share.id } } }),
    onSuccess: onRevoked,
  });
  const ends = t("Until {{date}}", { date: day(share.ends_at) });
  return (
    <li className="row apart">
      <span>
        {ends}{" "}
        <small>
          {t("made by {{name}}", { name: share.made_by })} ·{" "}
          {share.opened_on ? t("last opened {{date}}", { date: day(`${share.opened_on}T12:00`) }) : t("not opened yet")}
        </small>
      </span>
      <button
        type="button"
        className="button small"
        aria-label={`${t("Revoke")}: ${ends}`}
        disabled={revoke.isPending}
        onClick={() => revoke.mutate()}
      >
        {t("Revoke")}
      </button>
      <ErrorNote error={revoke.error} />
    </li>
  );
}
