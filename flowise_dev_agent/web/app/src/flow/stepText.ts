/** Texts of steps: Flowise keeps them as its editor writes them, HTML or Markdown; people read and write Markdown. */
import Turndown from "turndown";

/** How Flowise tells HTML of its editor from a text, also from one with tags in it such as `<rules>`. */
const HTML = /^\s*<(?:p|div|h[1-6]|ul|ol|blockquote|pre|table)\b/i;
const reader = new Turndown();
// As Flowise reads it: what a person wrote as Markdown stays so.
reader.escape = (text) => text;

/** The text as the model gets it. */
export const shownText = (stored: string): string => (HTML.test(stored) ? reader.turndown(stored) : stored);

/** The text as Flowise's editor reads it back. Its fields of several lines take Markdown, those of one line HTML. */
export function storedText(text: string, lines: boolean): string {
  if (!HTML.test(text) && (lines || !/[<&\n]/.test(text))) return text;
  const escaped = text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  return `<p>${escaped.split("\n\n").join("</p><p>").replace(/\n/g, "<br>")}</p>`;
}
