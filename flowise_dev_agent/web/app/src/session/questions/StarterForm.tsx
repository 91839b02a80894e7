/** The form of a plan: what it still needs comes first and is marked, the rest is folded away. */
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, type RefObject, useEffect, useRef } from "react";
import { designSchema } from "../../api/queries";
import type { DesignForm } from "../../api/types";
import { useStores } from "../../flow/stores";
import { t } from "../../i18n";
import { ErrorNote } from "../../ui/ErrorNote";
import { FileDrop, type StoredFile } from "../../ui/files";
import { Fields } from "../../ui/form/Fields";
import { asked, type FormField, fieldsOf, filledIn, type Schema, type Values } from "../../ui/form/schema";
import { useDraft } from "../../ui/useDraft";

/** Endings of the files that sources of these kinds are made of. */
const ENDINGS: Record<string, string> = { pdf: ".pdf", csv: ".csv", docx: ".docx" };
/** Among the needs: a file that goes with the answer. */
const FILE = "attachments";

interface Props {
  form: DesignForm;
  /** Paths of the parts that it lacks, such as `sources.0.text`. */
  needs: string[];
  questionId: string;
  instance: string;
  /** In the person's own words: they may be the text that is still needed. */
  requirement?: string;
  /** `files` are ids of those that go with it. */
  onSend: (form: DesignForm, files: string[]) => void;
  /** The form itself, for a button outside of it. */
  ref?: RefObject<HTMLFormElement | null>;
  children?: ReactNode;
}

export function StarterForm({ form, needs, questionId, instance, requirement, onSend, ref, children }: Props) {
  const schema = useQuery(designSchema());
  const [values, keep] = useDraft<Values>(`form:${questionId}`, { ...form });
  const [files, setFiles] = useDraft<StoredFile[]>(`files:${questionId}`, []);
  const stores = useStores(instance);
  const own = useRef<HTMLFormElement>(null);
  const element = ref ?? own;
  const fields = schema.data && fieldsOf(schema.data as Schema);

  const arrived = fields !== undefined;
  // Once it is drawn: the person goes on where something is missing.
  useEffect(() => {
    if (arrived) focusLacking(element.current);
  }, [arrived, element]);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (!fields || focusLacking(element.current)) return;
    onSend(
      filledIn(fields, values) as unknown as DesignForm,
      files.map((one) => one.id),
    );
  }
  const draw = (shown: FormField[]) => (
    <Fields
      fields={shown}
      values={values}
      onChange={(name, value) => keep({ ...values, [name]: value })}
      lists={{ "document-stores": stores }}
      needs={needs}
    />
  );
  // The conditions of a field name others: those that apply are found before they are parted.
  const shown = fields ? asked(fields, values) : [];
  const isNeeded = ({ name }: FormField) => needs.some((one) => one === name || one.startsWith(`${name}.`));
  const sources = (values.sources ?? []) as Values[];
  const empty = sources.findIndex((one, index) => needs.includes(`sources.${index}.text`) && !one.text);
  const kinds = [...new Set(sources.map((one) => ENDINGS[String(one.kind)]))];
  return (
    <form ref={element} className="stack" onSubmit={submit}>
      <ErrorNote error={schema.error} />
      {needs.includes(FILE) && (
        <FileDrop files={files} onChange={setFiles} kinds={kinds.filter(Boolean).join(",")} needed>
          <p className="field-name">{t("The file that the answers come from")}</p>
        </FileDrop>
      )}
      {draw(shown.filter(isNeeded))}
      {requirement && sources[empty] && (
        <div>
          <button
            type="button"
            className="button"
            onClick={() => keep({ ...values, sources: sources.with(empty, { ...sources[empty], text: requirement }) })}
          >
            {t("Use what I wrote as the text")}
          </button>
        </div>
      )}
      {needs.length === 0 ? (
        draw(shown)
      ) : (
        <details
          // A field that is folded away cannot say what is wrong with it.
          onInvalidCapture={({ currentTarget }) => {
            currentTarget.open = true;
          }}
        >
          <summary>{t("The other parts of the form")}</summary>
          <div className="stack more">{draw(shown.filter((one) => !isNeeded(one)))}</div>
        </details>
      )}
      {children}
    </form>
  );
}

/** Move the focus to the first part that is still to be filled in; false when there is none. */
function focusLacking(form: HTMLFormElement | null): boolean {
  const first = form?.querySelector<HTMLElement>("[data-lacking]");
  first?.focus();
  return Boolean(first);
}
