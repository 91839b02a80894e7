import ReactMarkdown from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";

/** Text that a model or a flow wrote: Markdown without raw HTML, images or scripts; links open elsewhere. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[rehypeSanitize]}
        skipHtml
        disallowedElements={["img", "input"]}
        components={{
          // The page's own headings come first: what a text calls a title is a smaller one here.
          h1: "h4",
          h2: "h4",
          h3: "h5",
          h4: "h6",
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
