import type { Turn } from "../api/types";
import { t } from "../i18n";
import { moment } from "../ui/format";
import { useOther } from "../ui/Person";
import { HandEdits } from "./HandEdits";

/** More text than this gets a scroll bar of its own. */
const LONG = 900;

interface Props {
  at: string;
  words: string;
  /** Name of who said it; null or left out where nobody is known. */
  by?: Turn["by"];
  /** The questions of a clarification with their answers. */
  answered?: Turn["answered"];
  /** What they changed by hand, which `words` does not say. */
  edits?: Turn["edits"];
  /** What the person is called where nobody is named. */
  speaker?: string;
}

/** What a person said, in their own words. */
export function UserMessage({ at, words, by, answered = [], edits = [], speaker }: Props) {
  const other = useOther(by);
  return (
    <article className="turn mine">
      <header>
        <strong>{speaker ?? (other || t("You"))}</strong>
        <small>
          <time dateTime={at}>{moment(at)}</time>
        </small>
      </header>
      {answered.length > 0 ? (
        <dl>
          {answered.map((one) => (
            <div key={one.question}>
              <dt>
                <small>{one.question}</small>
              </dt>
              <dd>{one.answer || t("Left open")}</dd>
            </div>
          ))}
        </dl>
      ) : words.length > LONG ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a long text must scroll by keyboard too
        <p className="long-words" tabIndex={0}>
          {words}
        </p>
      ) : (
        words && <p>{words}</p>
      )}
      {edits.length > 0 && <HandEdits edits={edits} />}
    </article>
  );
}
