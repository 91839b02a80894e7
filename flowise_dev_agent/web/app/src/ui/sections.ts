/** The Markdown without its sections (`## title`) of these titles. */
export function withoutSections(markdown: string, titles: string[]): string {
  let dropping = false;
  const kept: string[] = [];
  for (const line of markdown.split("\n")) {
    const title = /^## (.*)$/.exec(line)?.[1];
    if (title !== undefined) dropping = titles.includes(title.trim());
    if (!dropping) kept.push(line);
  }
  return kept.join("\n").trim();
}
