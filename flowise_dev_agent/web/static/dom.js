// Building the page from nodes. Text from a model or a person only ever becomes text nodes, never markup.

export const $ = (id) => document.getElementById(id);

/** An element with properties and children; strings become text, nothing is left out for null and false. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-")) node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A small part of Markdown (headings, lists, bold, code) as nodes. */
export function markdown(text) {
  const blocks = [];
  let list = null;
  for (const line of String(text).split("\n")) {
    const item = line.match(/^\s*[-*]\s+(.*)/);
    const heading = line.match(/^#{1,4}\s+(.*)/);
    if (item) {
      if (!list) blocks.push((list = el("ul")));
      list.append(el("li", {}, inline(item[1])));
      continue;
    }
    list = null;
    if (heading) blocks.push(el("h3", {}, inline(heading[1])));
    else if (line.trim()) blocks.push(el("p", {}, inline(line)));
  }
  return blocks;
}

function inline(text) {
  return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((part) => {
    if (part.startsWith("**") && part.endsWith("**") && part.length > 4) return el("strong", {}, part.slice(2, -2));
    if (part.startsWith("`") && part.endsWith("`") && part.length > 2) return el("code", {}, part.slice(1, -1));
    return part;
  });
}

/** A link, when the address is one that a browser may open. */
export function link(address, text) {
  return /^https?:\/\//.test(address ?? "") ? el("a", { href: address, target: "_blank", rel: "noopener" }, text) : text;
}
