import ReactMarkdown from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";

/**
 * Untrusted Markdown of a model or a flow, without HTML, images and scripts. Links open in a new tab;
 * with `links` false an address is a text. Its headings start at `level`, below those of the page.
 */
export function Markdown({ text, level = 3, links = true }: { text: string; level?: 2 | 3; links?: boolean }) {
  const heading = (depth: number) => `h${Math.min(level + depth, 6)}` as "h3";
  return (
    <div className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[rehypeSanitize]}
        skipHtml
        disallowedElements={links ? ["img", "input"] : ["img", "input", "a"]}
        unwrapDisallowed={!links}
        components={{
          h1: heading(0),
          h2: heading(1),
          h3: heading(2),
          h4: heading(3),
          a: ({ href, children }) => (
            <a href={href} target="_blank" rel="noopener noreferrer nofollow">
              {children}
            </a>
          ),
        }}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
}
