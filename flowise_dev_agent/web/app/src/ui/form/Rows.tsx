/** A list of things, each with fields of its own: they can be added, taken out and put in another order. */
import { useRef } from "react";
import { t } from "../../i18n";
import { type FieldProps, Fields } from "./Fields";
import { asked, type FormField, type Values } from "./schema";

/** A new row: its defaults, and the first choice where one must be made. */
function blankOf(columns: FormField[]): Values {
  const filled: Values = {};
  for (const { name, schema, choices } of columns)
    if (filled[name] === undefined) filled[name] = schema.default ?? choices[0]?.value;
  // A name with several meanings: the one that these values ask for.
  for (const { name, schema, choices } of asked(columns, filled))
    filled[name] = schema.default ?? choices[0]?.value ?? "";
  return filled;
}

export function Rows({ field, value, onChange, ...common }: FieldProps) {
  const { label, columns } = field;
  const all = useRef<HTMLFieldSetElement>(null);
  const rows = (Array.isArray(value) ? value : []) as Values[];
  const list = t(label);
  /** The rows are others now; the focus goes to what a person would use next. */
  function change(next: Values[], at: number, button: string) {
    onChange?.(next);
    requestAnimationFrame(() => {
      const row = all.current?.children[at + 1];
      (row?.querySelector<HTMLElement>(button) ?? row?.querySelector<HTMLElement>("button:not(:disabled)"))?.focus();
    });
  }
  const move = (from: number, to: number) => {
    const row = rows[from];
    if (row) change(rows.toSpliced(from, 1).toSpliced(to, 0, row), to, `.${to < from ? "up" : "down"}:not(:disabled)`);
  };
  return (
    <fieldset className="parts" ref={all}>
      <legend>{list}</legend>
      {rows.map((row, index) => {
        const set = (next: Values) => onChange?.(rows.with(index, next));
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity of their own
          <fieldset className="row-of-list" key={index} aria-label={`${list} ${index + 1}`}>
            <div className="options">
              {common.row?.(field, row, set) ?? (
                <Fields
                  {...common}
                  fields={columns}
                  values={row}
                  onChange={(name, part) => set({ ...row, [name]: part })}
                />
              )}
            </div>
            <div className="row">
              <button
                type="button"
                className="button plain small up"
                aria-label={t("Move up")}
                disabled={index === 0}
                onClick={() => move(index, index - 1)}
              >
                ↑
              </button>
              <button
                type="button"
                className="button plain small down"
                aria-label={t("Move down")}
                disabled={index === rows.length - 1}
                onClick={() => move(index, index + 1)}
              >
                ↓
              </button>
              <button
                type="button"
                className="button plain small"
                onClick={() => change(rows.toSpliced(index, 1), Math.min(index, rows.length - 1), ".add")}
              >
                {t("Remove")}
              </button>
            </div>
          </fieldset>
        );
      })}
      <div>
        <button
          type="button"
          className="button small add"
          onClick={() => change([...rows, blankOf(columns)], rows.length, "input, select, textarea")}
        >
          {t("Add to {{list}}", { list: list.toLowerCase() })}
        </button>
      </div>
    </fieldset>
  );
}
