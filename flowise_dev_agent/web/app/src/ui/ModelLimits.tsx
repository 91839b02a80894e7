import { useQuery } from "@tanstack/react-query";
import { info } from "../api/queries";
import type { ModelView } from "../api/types";
import { t } from "../i18n";
import { wordedList } from "../i18n/texts";
import { count, moment } from "./format";

/** What was found out about each model that plans, and what is lost with it. */
export function ModelLimits() {
  const models = useQuery(info()).data?.models ?? [];
  return models.map((model) => (
    <section key={model.model} aria-label={model.model}>
      <small>
        {models.length > 1 && <strong>{model.model}: </strong>}
        {checkOf(model)}
      </small>
      {model.lacks.length > 0 && (
        <ul>
          {wordedList(model, "lacks").map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      )}
    </section>
  ));
}

function checkOf({ checked }: ModelView): string {
  if (!checked) return t("Not checked yet: the command “doctor” of the service does it.");
  return t("Checked at {{when}}: it reads {{window}} tokens and answers with up to {{output}}.", {
    when: moment(checked.checked_at),
    window: count(checked.window),
    output: count(checked.output_tokens),
  });
}
