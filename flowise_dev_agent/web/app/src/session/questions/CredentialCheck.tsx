import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { health } from "../../api/queries";
import type { Action, InterruptOf, Option } from "../../api/types";
import { t } from "../../i18n";
import { AddCredential } from "../../ui/AddCredential";
import { Choices, type FormProps } from "./controls";

/** Credentials that the plan needs: choose one of several, or create a missing one. */
export function CredentialCheckForm({ question, session, busy, send }: FormProps<InterruptOf<"credential_check">>) {
  const { credentials } = question.data;
  const [chosen, setChosen] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState("");
  const several = credentials.filter((one) => one.candidates.length > 0);
  const absent = credentials.filter((one) => one.candidates.length === 0);
  const endpoint = useQuery(health()).data?.flowise[session.instance]?.endpoint;

  function choose(action: Action) {
    if (action === "retry" || action === "skip" || action === "cancel") send({ action });
    else if (several.some((one) => !chosen[one.type])) setProblem(t("Choose a credential for each type."));
    else if (action === "choose") send({ action, choose: chosen });
  }

  return (
    <div className="stack">
      {absent.map((one) => (
        <div key={one.type} className="note warn">
          <p>{t("Flowise has no credential of type {{type}}.", { type: one.type })}</p>
          <AddCredential type={one.type} instance={session.instance} onCreated={() => send({ action: "retry" })} />
          <p>
            {t("Or")}{" "}
            {endpoint ? (
              <a href={`${endpoint}/credentials`} target="_blank" rel="noopener noreferrer">
                {t("create it in Flowise")}
              </a>
            ) : (
              t("create it in Flowise")
            )}{" "}
            {t('and press "Read again".')}
          </p>
        </div>
      ))}
      {several.map((one) => (
        <label key={one.type} className="field">
          {one.type}
          <select
            value={chosen[one.type] ?? ""}
            onChange={(event) => {
              setProblem("");
              setChosen({ ...chosen, [one.type]: event.target.value });
            }}
          >
            <option value="">{t("Choose…")}</option>
            {one.candidates.map((candidate) => (
              <option key={candidate.id} value={candidate.id}>
                {candidate.name}
              </option>
            ))}
          </select>
        </label>
      ))}
      <p role="alert" className="problem">
        {problem}
      </p>
      <Choices options={preferred(question.options)} busy={busy} onChoose={choose} />
    </div>
  );
}

/** The options with "choose" first. */
const preferred = (options: Option[]): Option[] => [
  ...options.filter((one) => one.value === "choose"),
  ...options.filter((one) => one.value !== "choose"),
];
