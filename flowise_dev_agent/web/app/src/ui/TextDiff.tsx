/** What changed in a text: words put in and taken out are marked, unchanged lines are folded. */
import { diffWordsWithSpace } from "diff";
import { useMemo, useState } from "react";
import { t } from "../i18n";
import { plural } from "./format";

/** After this time two texts are shown whole, one after the other. */
const MOST_MS = 150;
/** So are these, such as numbers. */
const SHORT = 40;

interface Props {
  before: string;
  after: string;
}

export function TextDiff({ before, after }: Props) {
  const [whole, show] = useState(false);
  const parts = useMemo(() => partsOf(before, after), [before, after]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long text must scroll by keyboard too
    <div className="text-diff" tabIndex={0}>
      {parts.map(({ kind, text }, index) =>
        kind === "same" ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts have no identity of their own
          <Same key={index} text={text} first={index === 0} last={index === parts.length - 1} {...{ whole, show }} />
        ) : kind === "removed" ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts have no identity of their own
          <del key={index}>
            <span className="visually-hidden">{t("Before")} </span>
            {text}
          </del>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts have no identity of their own
          <ins key={index}>
            <span className="visually-hidden">{t("After")} </span>
            {text}
          </ins>
        ),
      )}
    </div>
  );
}

interface Part {
  kind: "same" | "added" | "removed";
  text: string;
}

export function partsOf(before: string, after: string): Part[] {
  const short = Math.max(before.length, after.length) <= SHORT;
  const found = short ? undefined : diffWordsWithSpace(before, after, { timeout: MOST_MS });
  const all: Part[] = found
    ? found.map(({ value, added, removed }) => ({ kind: added ? "added" : removed ? "removed" : "same", text: value }))
    : [
        { kind: "removed", text: before },
        { kind: "added", text: after },
      ];
  return all.filter((one) => one.text);
}

interface SameProps {
  text: string;
  first: boolean;
  last: boolean;
  whole: boolean;
  show: (whole: boolean) => void;
}

/** Unchanged text: only the lines beside a change, the others on demand. */
function Same({ text, first, last, whole, show }: SameProps) {
  const [head, between, tail] = folded(text, first, last);
  if (whole || between === 0) return text;
  return (
    <>
      {head}
      <button type="button" className="button plain small unchanged" onClick={() => show(true)}>
        {plural(between, "unchanged line")}
      </button>
      {tail}
    </>
  );
}

/** The lines after the change before it, how many are left out, and the lines before the next change. */
export function folded(text: string, first: boolean, last: boolean): [string, number, string] {
  const lines = text.split("\n");
  const head = first ? 0 : 2;
  const tail = last ? 0 : 2;
  const between = lines.length - head - tail;
  if (between < 2) return [text, 0, ""];
  return [lines.slice(0, head).join("\n"), between, lines.slice(lines.length - tail).join("\n")];
}
