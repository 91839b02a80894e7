import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { ago, count, dollars, duration, plural } from "./format";
import { Markdown } from "./Markdown";

afterEach(cleanup);

it("formats numbers and times", () => {
  expect([duration(820), duration(4_200), duration(185_000)]).toEqual(["820 ms", "4.2 s", "3 min 5 s"]);
  expect([dollars(0), dollars(0.0042), dollars(1.5)]).toEqual(["$0.00", "$0.0042", "$1.50"]);
  expect([count(950), count(12_400)]).toEqual(["950", "12.4K"]);
  expect([plural(1, "node"), plural(2, "node")]).toEqual(["1 node", "2 nodes"]);
  const now = Date.parse("2026-01-01T10:00:00Z");
  expect(ago("2026-01-01T09:59:40Z", now)).toBe("just now");
  expect(ago("2026-01-01T09:57:00Z", now)).toBe("3 minutes ago");
  expect(ago("2025-12-31T09:00:00Z", now)).toBe("yesterday");
});

it("P85: an address in a plan is a text", () => {
  const { container } = render(
    <Markdown text={"See https://evil.example and [this](https://evil.example)."} links={false} />,
  );
  expect(container.querySelectorAll("a")).toHaveLength(0);
  expect(container.textContent).toContain("See https://evil.example and this.");
});

it("P70: renders model output without HTML, images, scripts or dangerous links", () => {
  const nasty = [
    "# Title <script>alert(1)</script>",
    "<img src=x onerror=alert(1)> <b onclick=alert(1)>bold</b>",
    "![pixel](https://evil.example/pixel.png)",
    "[bad](javascript:alert(1)) [data](data:text/html,x) [good](https://docs.flowiseai.com)",
    "| a | b |\n|---|---|\n| 1 | 2 |",
  ].join("\n\n");
  const { container } = render(<Markdown text={nasty} />);
  expect(container.querySelectorAll("script, img, b, iframe, [onclick], [onerror]")).toHaveLength(0);
  const links = [...container.querySelectorAll("a")].map((one) => one.getAttribute("href"));
  expect(links.filter(Boolean)).toEqual(["https://docs.flowiseai.com"]);
  expect(screen.getByRole("heading", { level: 3 }).textContent).toContain("Title");
  expect(container.querySelectorAll("td")).toHaveLength(2);
});

it("draws what models write", () => {
  const text =
    "1. one\n2. two\n\n[docs][a] ~~old~~ `x`\n\n> said\n\n```js\n1 < 2\n```\n\n- [x] done\n\n[a]: https://docs.flowiseai.com";
  const { container } = render(<Markdown text={text} />);
  expect(container.querySelector(".markdown")?.innerHTML.replace(/\n/g, "")).toBe(
    '<ol start="1"><li>one</li><li>two</li></ol>' +
      '<p><a href="https://docs.flowiseai.com" target="_blank" rel="noopener noreferrer nofollow">docs</a> ' +
      "<del>old</del> <code>x</code></p><blockquote><p>said</p></blockquote>" +
      "<pre><code>1 &lt; 2</code></pre><ul><li>done</li></ul>",
  );
});

it.each([
  ["quotes", "> ".repeat(3_000), "blockquote"],
  ["lists", "- ".repeat(3_000), "ul"],
  ["emphasis", `${"*".repeat(3_000)}a${"*".repeat(3_000)}`, "em, strong"],
  ["links", "[".repeat(3_000) + "](x)".repeat(3_000), "a"],
  ["footnotes", "[^a]: ".repeat(3_000), "section"],
])("shows %s that are nested too deep as they are", (_, deep, tags) => {
  const begun = performance.now();
  const { container } = render(<Markdown text={`# Title\n\n${deep} end\n\n\`code\``} />);
  expect(performance.now() - begun).toBeLessThan(4_000);
  expect(container.querySelectorAll(tags)).toHaveLength(0);
  expect(container.querySelector("code")?.textContent).toBe("code");
  expect(container.textContent).toContain("end");
});
