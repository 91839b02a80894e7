import { t } from "../i18n";
import { useNoticeSwitch } from "./notices";

/** Switches notifications on and off; nothing where the browser has none or the person has refused them. */
export function NoticeButton() {
  const notices = useNoticeSwitch();
  if (!notices) return null;
  return (
    <button type="button" className="button small" aria-pressed={notices.on} onClick={notices.toggle}>
      {notices.on ? t("Notifications are on") : t("Notify me in the browser")}
    </button>
  );
}
