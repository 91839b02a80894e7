/** Formats of numbers and times. */
import { language, t } from "../i18n";

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** "3 minutes ago"; seconds are "just now". */
export function ago(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size)
      return new Intl.RelativeTimeFormat(language(), { numeric: "auto" }).format(Math.round(seconds / size), unit);
  }
  return t("just now");
}

/** Date and time in the browser's locale. */
export const moment = (iso: string): string =>
  new Date(iso).toLocaleString(language() === "en" ? undefined : language(), {
    dateStyle: "medium",
    timeStyle: "short",
  });

/** The date alone. */
export const day = (iso: string): string =>
  new Date(iso).toLocaleDateString(language() === "en" ? undefined : language(), { dateStyle: "medium" });

/** "820 ms", "4.2 s", "3 min 5 s". */
export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(milliseconds / 60_000);
  return `${minutes} min ${Math.round((milliseconds % 60_000) / 1_000)} s`;
}

/** "$0.42"; less than a cent with more digits. */
export const dollars = (usd: number): string => `$${usd.toFixed(usd > 0 && usd < 0.01 ? 4 : 2)}`;

/** "950", "12.4k", "1.2M". */
export const count = (value: number): string =>
  new Intl.NumberFormat(language(), { notation: "compact", maximumFractionDigits: 1 }).format(value);

/** "1 test", "3 tests". The forms of each language are in its file. */
export const plural = (count: number, one: string): string => t(`{{count}} ${one}`, { count });
