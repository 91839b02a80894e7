import { t } from "../i18n";
import { moment } from "../ui/format";

/** More text than this gets a scroll bar of its own. */
const LONG = 900;

/** What the person said, in their own words. */
export function Said({ at, words, about }: { at: string; words: string; about?: string }) {
  return (
    <article className="turn mine">
      <header>
        <strong>{about ?? t("You")}</strong>
        <small>
          <time dateTime={at}>{moment(at)}</time>
        </small>
      </header>
      {words.length > LONG ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a long text must scroll by keyboard too
        <p className="long-words" tabIndex={0}>
          {words}
        </p>
      ) : (
        <p>{words}</p>
      )}
    </article>
  );
}
