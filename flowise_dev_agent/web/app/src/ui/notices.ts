/** Notifications of the browser when a session waits for the person. Off until the person wants them. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { listSessions } from "../api/sessions";
import { t } from "../i18n";
import { questionTitle } from "../session/questionTitles";

const KEPT = "flowise-dev-agent-notices";
const CHANGED = "flowise-dev-agent-notices-changed";
const EVERY_MS = 10_000;
const MOST = 20;

const possible = () => "Notification" in window && Notification.permission !== "denied";
const wanted = () => possible() && Notification.permission === "granted" && localStorage.getItem(KEPT) === "on";

/** Whether notices are on, and a switch; null where the browser has none or the person has refused them. */
export function useNoticeSwitch(): { on: boolean; toggle: () => Promise<void> } | null {
  const [on, setOn] = useState(wanted);
  if (!possible()) return null;
  return {
    on,
    toggle: async () => {
      const granted = !on && (await Notification.requestPermission()) === "granted";
      localStorage.setItem(KEPT, granted ? "on" : "off");
      setOn(granted);
      window.dispatchEvent(new Event(CHANGED));
    },
  };
}

/** Tell of each question that has come since the page was opened, unless the person is looking at it. */
export function useNotices(): void {
  const [on, setOn] = useState(wanted);
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    const changed = () => setOn(wanted());
    window.addEventListener(CHANGED, changed);
    return () => window.removeEventListener(CHANGED, changed);
  }, []);
  const { data } = useQuery({
    queryKey: ["sessions", "notices"],
    queryFn: ({ signal }) => listSessions({ status: "pending_interrupt", limit: MOST }, signal),
    enabled: on,
    refetchInterval: EVERY_MS,
    refetchIntervalInBackground: true,
  });
  useEffect(() => {
    if (!data) return;
    const before = known.current;
    known.current = new Set([...(before ?? []), ...data.sessions.flatMap((one) => one.interrupt?.id ?? [])]);
    if (!before) return;
    for (const { thread_id, session_name, interrupt } of data.sessions) {
      const looking = document.visibilityState === "visible" && location.hash === `#/s/${thread_id}`;
      if (!interrupt || before.has(interrupt.id) || looking) continue;
      const notice = new Notification(t(questionTitle(interrupt.type, interrupt.reason)), {
        body: session_name ?? "",
        tag: interrupt.id,
      });
      notice.onclick = () => {
        window.focus();
        location.hash = `#/s/${thread_id}`;
      };
    }
  }, [data]);
}
