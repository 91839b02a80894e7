/** Texts of steps: Flowise keeps them as its editor writes them, HTML or Markdown; people read and write Markdown. */

/** How Flowise tells HTML of its editor from a text, also from one with tags in it such as `<rules>`. */
const HTML = /^\s*<(?:p|div|h[1-6]|ul|ol|blockquote|pre|table)\b/i;
const START = /\bstart="(\d{1,6})"/i;
/** Deeper lists are indented no more. */
const DEEPEST = 8;
const SIGNS: Record<string, string> = { lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: " ", amp: "&" };

/** The text as the model gets it. The page's policy lets no browser read HTML; the service does the same. */
export function shownText(stored: string): string {
  if (!HTML.test(stored)) return stored;
  // The number of the next item of each list that is open; 0 where they have none.
  const lists: number[] = [];
  const list = (_: string, end: string, tag: string, attributes: string): string => {
    if (tag.toLowerCase() !== "li") {
      if (end) lists.pop();
      else lists.push(tag.toLowerCase() === "ol" ? Number(START.exec(attributes)?.[1] ?? 1) : 0);
      return end && lists.length === 0 ? "\n\n" : "";
    }
    const next = lists.pop() ?? 0;
    lists.push(next && !end ? next + 1 : next);
    return end ? "\n" : "  ".repeat(Math.min(Math.max(lists.length - 1, 0), DEEPEST)) + (next ? `${next}. ` : "- ");
  };
  return stored
    .replace(/<\/(?:p|div|h[1-6]|blockquote|pre|table)>\s*/gi, "\n\n")
    .replace(/<(\/?)(ol|ul|li)\b([^<>]*)>/gi, list)
    .replace(/<\/?(?:strong|b)>/gi, "**")
    .replace(/<\/?(?:em|i)>/gi, "_")
    .replace(/<\/?code>/gi, "`")
    .replace(/<br\b[^<>]*>/gi, "\n")
    .replace(/<[^<>]*>/g, "")
    .replace(/&(#39|\w{2,4});/g, (whole, name: string) => SIGNS[name] ?? whole)
    .replace(/\n\s*\n/g, "\n\n")
    .trim();
}

/** The text as Flowise's editor reads it back. Its fields of several lines take Markdown, those of one line HTML. */
export function storedText(text: string, lines: boolean): string {
  if (!HTML.test(text) && (lines || !/[<&\n]/.test(text))) return text;
  const escaped = text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  return `<p>${escaped.split("\n\n").join("</p><p>").replace(/\n/g, "<br>")}</p>`;
}
