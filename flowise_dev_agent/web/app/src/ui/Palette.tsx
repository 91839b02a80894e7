/** Everything by its name: views, flows with their actions, sessions. Opened by Ctrl+K. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Command } from "cmdk";
import { useDeferredValue, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { flowList } from "../api/queries";
import { listSessions } from "../api/sessions";
import { t } from "../i18n";
import { ago } from "./format";
import { actionsNow } from "./paletteActions";
import { MOST_SEARCHED, searched, tooLong } from "./tooLong";

const SHOWN = 6;

interface Props {
  views: { path: string; title: string }[];
  onClose: () => void;
}

export function Palette({ views, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [, go] = useLocation();
  const query = useDeferredValue(searched(text));
  const flows = useInfiniteQuery(flowList(query, undefined, SHOWN)).data?.pages[0]?.flows ?? [];
  const sessions =
    useQuery({
      queryKey: ["sessions", "palette", query],
      queryFn: ({ signal }) => listSessions({ query: query || undefined, limit: SHOWN }, signal),
      placeholderData: (before) => before,
    }).data?.sessions ?? [];
  const places = [...views, { path: "/new", title: t("Build by hand") }].filter((one) =>
    one.title.toLowerCase().includes(query.toLowerCase()),
  );
  const [offered] = useState(actionsNow);
  // At once, so that Enter takes the first.
  const actions = offered
    .filter(([name]) => name.toLowerCase().includes(text.trim().toLowerCase()))
    .slice(0, 2 * SHOWN);
  // The browser gives the focus back to where it was.
  useEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector("input")?.focus();
  }, []);
  const to = (path: string) => () => {
    dialog.current?.close();
    go(path);
  };

  return (
    <dialog ref={dialog} className="palette" aria-label={t("Go to")} onClose={onClose}>
      <Command label={t("Go to")} shouldFilter={false} loop>
        <Command.Input placeholder={t("Flows, sessions, views…")} value={text} onValueChange={setText} />
        <p role="alert" className="problem">
          {tooLong(text, MOST_SEARCHED)}
        </p>
        <Command.List label={t("Found")}>
          <Command.Empty>{t("Nothing found.")}</Command.Empty>
          {actions.length > 0 && (
            <Command.Group heading={t("This flow")}>
              {actions.map(([name, act]) => (
                <Command.Item
                  key={name}
                  value={`do ${name}`}
                  onSelect={() => {
                    dialog.current?.close();
                    act();
                  }}
                >
                  {name}
                </Command.Item>
              ))}
            </Command.Group>
          )}
          {flows.length > 0 && (
            <Command.Group heading={t("Flows")}>
              {flows.flatMap((flow) => {
                const at = `/f/${flow.id}/${flow.instance}`;
                const entry = (action: string, path: string) => (
                  <Command.Item key={path} value={path} onSelect={to(path)}>
                    <span className="clip grow">{flow.name}</span>
                    <small>{action}</small>
                  </Command.Item>
                );
                // The actions of the few that are meant.
                if (!query || flows.length > 2) return [entry(ago(flow.updated), at)];
                return [
                  entry(t("Open"), at),
                  entry(t("Change"), `${at}/change`),
                  entry(t("Try"), `${at}/try`),
                  entry(t("History"), `/history/${flow.id}`),
                ];
              })}
            </Command.Group>
          )}
          {sessions.length > 0 && (
            <Command.Group heading={t("Sessions")}>
              {sessions.map((one) => (
                <Command.Item key={one.thread_id} value={one.thread_id} onSelect={to(`/s/${one.thread_id}`)}>
                  <span className="clip grow">{one.session_name || one.requirement}</span>
                  <small>{ago(one.updated_at)}</small>
                </Command.Item>
              ))}
            </Command.Group>
          )}
          {places.length > 0 && (
            <Command.Group heading={t("Views")}>
              {places.map(({ path, title }) => (
                <Command.Item key={path} value={path} onSelect={to(path)}>
                  {title}
                </Command.Item>
              ))}
            </Command.Group>
          )}
        </Command.List>
      </Command>
    </dialog>
  );
}
