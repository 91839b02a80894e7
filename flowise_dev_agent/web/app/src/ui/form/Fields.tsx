/** The form of the page: the fields of a JSON Schema, each with its label, hint and limits. */
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { inSentence, t } from "../../i18n";
import { tooLong } from "../tooLong";
import { asked, type FormField, type Listed, readValue, textOf, type Values, withListed } from "./schema";

/** A longer text gets several lines. */
const LONG_LINE = 60;
type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

interface Common {
  /** When what is typed counts: with each key, or when the field is left. */
  counts?: "typed" | "left";
  /** Before the names of the controls. */
  prefix?: string;
  /** What can be chosen in fields with `x-lists`, by its value. */
  lists?: Record<string, Listed[]>;
  /** Paths of the parts that must be filled in, such as `sources.0.text`. */
  needs?: string[];
  /** Where these fields are, before their names in such a path. */
  path?: string;
  /** Draws a text of several lines otherwise than as a plain text area; null leaves it as it is. */
  text?: (field: FormField, control: TextControl) => ReactNode;
  /** Draws the fields of a row of a list otherwise than `Fields` does. */
  row?: (field: FormField, row: Values, onChange: (row: Values) => void, index: number) => ReactNode;
}

/** What a field of text is, and what is in it. */
export interface TextControl {
  name: string;
  about: string;
  value: string;
  required: boolean;
  onSet: (text: string) => void;
}

interface FieldsProps extends Common {
  fields: FormField[];
  values: Values;
  /** A value of undefined means none. Left out where the form itself is read: then no value is kept here. */
  onChange?: (name: string, value: unknown) => void;
}

/** The fields that the values ask for. */
export function Fields({ fields, values, onChange, ...common }: FieldsProps) {
  return asked(fields, values).map((field) => (
    <Field
      key={field.name}
      field={withListed(field, common.lists?.[field.schema["x-lists"] ?? ""], values[field.name])}
      value={values[field.name] ?? field.schema.default}
      {...(onChange && { onChange: (value: unknown) => onChange(field.name, value) })}
      {...common}
    />
  ));
}

interface FieldProps extends Common {
  field: FormField;
  value: unknown;
  onChange?: (value: unknown) => void;
}

/** A field. The browser holds what is typed; a value that changes outside of it, as by undo, is put into it. */
export function Field(props: FieldProps) {
  const { field, value, onChange, counts = "typed", prefix = "", path = "" } = props;
  const { name, label, hint, kind, choices, schema } = field;
  const isNeeded = props.needs?.includes(path + name) ?? false;
  const required = field.required || isNeeded;
  const id = useId();
  const text = textOf(value);
  const [first] = useState(text);
  const control = useRef<Control | null>(null);
  const known = useRef(text);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const element = control.current;
    if (!element || known.current === text) return;
    known.current = text;
    if (kind === "switch") (element as HTMLInputElement).checked = text === "true";
    else element.value = text;
  }, [text, kind]);

  // Other choices come: the browser would show the first of them.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the value itself is looked after above
  useEffect(() => {
    if (kind === "choice" && onChange && control.current) control.current.value = text;
  }, [kind, choices.length]);

  if (kind === "rows") return <Rows {...props} />;
  if (kind === "group") return <Group {...props} />;
  if (kind === "list" && choices.length > 0) return <Several {...props} />;

  const set = (next: unknown) => {
    if (!onChange) return;
    known.current = textOf(next);
    if (known.current !== text) onChange(next);
  };
  const most = schema.maxLength;
  const typed = {
    ref: (element: Control | null) => {
      control.current = element;
    },
    onChange: (event: { target: Control }) => {
      const { target } = event;
      const wrong = most ? tooLong(target.value, most) : "";
      target.setCustomValidity(wrong);
      setProblem(wrong);
      if (counts === "typed" || kind === "choice") set(readValue(field, target.value));
    },
    onBlur: (event: { target: Control }) => {
      if (event.target.validity.valid) set(readValue(field, event.target.value));
    },
  };
  const lacks = isNeeded && !text.trim();
  const about = [hint && `${id}-hint`, problem && `${id}-problem`, lacks && `${id}-lacks`].filter(Boolean).join(" ");
  const common = {
    id,
    name: prefix + name,
    required,
    "aria-describedby": about || undefined,
    ...(lacks && { "data-lacking": true }),
  };
  const help = hint && <small id={`${id}-hint`}>{hint}</small>;

  if (kind === "switch")
    return (
      <div className="check">
        <input
          {...common}
          ref={typed.ref}
          required={false}
          type="checkbox"
          defaultChecked={first === "true"}
          onChange={(event) => set(event.target.checked)}
        />
        <span>
          <label htmlFor={id}>{label}</label> {help}
        </span>
      </div>
    );
  const secret = kind === "secret";
  const several = kind === "text" || kind === "list" || (schema["x-rows"] ?? 1) > 1 || first.length > LONG_LINE;
  const own =
    kind !== "list" && kind !== "choice" && !secret
      ? props.text?.(field, {
          name: common.name,
          about: [hint, lacks && t("Still needed")].filter(Boolean).join(" "),
          value: text,
          required,
          onSet: set,
        })
      : null;
  if (own)
    return (
      <div className="field">
        <span {...(lacks && { "data-lacking": true })}>{label}</span>
        {lacks && <Lacks id={`${id}-lacks`} />}
        {own}
        {help}
      </div>
    );
  return (
    <div className="field">
      <label htmlFor={id}>{kind === "list" ? t("{{label}} (one a line)", { label }) : label}</label>
      {lacks && <Lacks id={`${id}-lacks`} />}
      {kind === "choice" ? (
        <select {...common} {...typed} defaultValue={first}>
          {!choices.some((one) => one.value === text) && <option value={text}>{text || t("Choose…")}</option>}
          {choices.map((one) => (
            <option key={one.value} value={one.value}>
              {one.label}
            </option>
          ))}
        </select>
      ) : several ? (
        <textarea
          {...common}
          {...typed}
          rows={kind === "list" ? 3 : 5}
          className={secret ? "unseen" : undefined}
          defaultValue={first}
        />
      ) : (
        <input
          {...common}
          {...typed}
          type={kind === "number" ? "number" : secret ? "password" : "text"}
          autoComplete={secret ? "new-password" : undefined}
          {...(kind === "number" && { step: "any", min: schema.minimum, max: schema.maximum })}
          defaultValue={first}
        />
      )}
      {help}
      {problem && (
        <small id={`${id}-problem`} role="alert" className="problem">
          {problem}
        </small>
      )}
    </div>
  );
}

/** Says that a part is still to be filled in. */
function Lacks({ id }: { id: string }) {
  return (
    <small id={id} className="problem">
      {t("Still needed")}
    </small>
  );
}

/** Fields that belong together. */
function Group({ field, value, onChange, ...common }: FieldProps) {
  const values = (value ?? {}) as Values;
  const path = `${common.path ?? ""}${field.name}.`;
  return (
    <fieldset className="parts">
      <legend>{field.label}</legend>
      <Fields
        {...common}
        path={path}
        fields={field.columns}
        values={values}
        onChange={(name, part) => onChange?.({ ...values, [name]: part })}
      />
    </fieldset>
  );
}

/** Any of the choices. */
function Several({ field, value, onChange }: FieldProps) {
  const chosen = Array.isArray(value) ? value.map(String) : [];
  const others = chosen.filter((one) => !field.choices.some((choice) => choice.value === one));
  return (
    <fieldset className="parts">
      <legend>{field.label}</legend>
      {[...field.choices, ...others.map((one) => ({ value: one, label: one }))].map(({ value: one, label }) => (
        <label key={one} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(one)}
            onChange={({ target }) =>
              onChange?.(target.checked ? [...chosen, one] : chosen.filter((other) => other !== one))
            }
          />
          <span>{label}</span>
        </label>
      ))}
      {field.hint && <small>{field.hint}</small>}
    </fieldset>
  );
}

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

/** A list of things, each with fields of its own: they can be added, taken out and put in another order. */
function Rows({ field, value, onChange, ...common }: FieldProps) {
  const { label, columns } = field;
  const all = useRef<HTMLFieldSetElement>(null);
  const rows = (Array.isArray(value) ? value : []) as Values[];
  const id = useId();
  const path = `${common.path ?? ""}${field.name}`;
  const lacks = rows.length === 0 && (common.needs?.includes(path) ?? false);
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
      <legend>{label}</legend>
      {rows.map((row, index) => {
        const set = (next: Values) => onChange?.(rows.with(index, next));
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity of their own
          <fieldset className="row-of-list" key={index} aria-label={`${label} ${index + 1}`}>
            <div className="options">
              {common.row?.(field, row, set, index) ?? (
                <Fields
                  {...common}
                  path={`${path}.${index}.`}
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
      {lacks && <Lacks id={id} />}
      <div>
        <button
          type="button"
          className="button small add"
          {...(lacks && { "data-lacking": true, "aria-describedby": id })}
          onClick={() => change([...rows, blankOf(columns)], rows.length, "input, select, textarea")}
        >
          {t("Add to {{list}}", { list: inSentence(label) })}
        </button>
      </div>
    </fieldset>
  );
}
