import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { createElement, Fragment, type ReactNode } from "react";

type Part = ReturnType<typeof fromMarkdown> | ReturnType<typeof fromMarkdown>["children"][number];

const TAGS: Partial<Record<Part["type"], string>> = {
  blockquote: "blockquote",
  delete: "del",
  emphasis: "em",
  paragraph: "p",
  strong: "strong",
  tableCell: "td",
  tableRow: "tr",
};
const SAFE = /^(https?|mailto):/i;
const EXTENSIONS = { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] };

/** More than people write: signs in one paragraph, and quotes and lists in each other, cost the parser their square. */
const MOST_SIGNS = 600;
const TOO_DEEP = /^(?:[ \t]*(?:>[ \t]*|(?:[-+*]|\d{1,9}[.)])[ \t]+){30}|[ \t]{60,}(?:[->+*]|\d))/m;
const isDense = (text: string): boolean =>
  text.split(/\n[ \t]*\n/).some((one) => (one.match(/[*_~[\]]/g)?.length ?? 0) > MOST_SIGNS);
const NESTED = ["blockQuote", "list"];
const SIGNS = ["attention", "labelEnd", "labelStartImage", "labelStartLink", "strikethrough"];
const NOTES = ["gfmFootnoteCall", "gfmFootnoteDefinition", "gfmPotentialFootnoteCall"];
const left = (text: string): string[] => [
  ...(TOO_DEEP.test(text) ? NESTED : []),
  ...(isDense(text) ? [...SIGNS, ...NOTES] : []),
];

/**
 * Untrusted Markdown of a model or a flow, without HTML, images and scripts. Links open in a new tab;
 * with `links` false an address is a text. Signs that are nested too
 * deep are shown as they are. Its headings start at `level`, below those of the page.
 */
export function Markdown({ text, level = 3, links = true }: { text: string; level?: 2 | 3; links?: boolean }) {
  const root = fromMarkdown(text, { ...EXTENSIONS, extensions: [gfm(), { disable: { null: left(text) } }] });
  const addresses = new Map<string, string>();
  for (const one of root.children) if (one.type === "definition") addresses.set(one.identifier, one.url);
  const drawnAll = (parts: Part[]): ReactNode => createElement(Fragment, null, ...parts.map(drawn));
  const linked = (address: string, inside: ReactNode) =>
    links && SAFE.test(address) ? (
      <a href={address} target="_blank" rel="noopener noreferrer nofollow">
        {inside}
      </a>
    ) : (
      inside
    );
  const drawn = (part: Part): ReactNode => {
    const inside = "children" in part ? drawnAll(part.children) : null;
    const tag = TAGS[part.type];
    if (tag) return createElement(tag, null, inside);
    switch (part.type) {
      case "text":
        return part.value;
      case "heading":
        return createElement(`h${Math.min(level + part.depth - 1, 6)}`, null, inside);
      case "list":
        return createElement(part.ordered ? "ol" : "ul", { start: part.start ?? undefined }, inside);
      case "listItem":
        // The paragraphs of an item without blank lines are lines.
        if (part.spread) return <li>{inside}</li>;
        return createElement(
          "li",
          null,
          ...part.children.map((one) => (one.type === "paragraph" ? drawnAll(one.children) : drawn(one))),
        );
      case "table": {
        const [head, ...rows] = part.children;
        const heads = head?.children.map((cell) => createElement("th", null, drawnAll(cell.children))) ?? [];
        return (
          <table>
            <thead>{createElement("tr", null, ...heads)}</thead>
            <tbody>{drawnAll(rows)}</tbody>
          </table>
        );
      }
      case "inlineCode":
        return <code>{part.value}</code>;
      case "code":
        return (
          <pre>
            <code>{part.value}</code>
          </pre>
        );
      case "break":
        return <br />;
      case "thematicBreak":
        return <hr />;
      case "link":
        return linked(part.url, inside);
      case "linkReference":
        return linked(addresses.get(part.identifier) ?? "", inside);
      case "footnoteReference":
        return `[${part.label ?? part.identifier}]`;
      default:
        return inside;
    }
  };
  return <div className="markdown">{drawn(root)}</div>;
}
