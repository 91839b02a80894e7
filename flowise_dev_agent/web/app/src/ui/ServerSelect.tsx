import { t } from "../i18n";

interface Props {
  instances: string[];
  value: string;
  onChange: (instance: string) => void;
}

/** Which Flowise server, where there are several. */
export function ServerSelect({ instances, value, onChange }: Props) {
  if (instances.length < 2) return null;
  return (
    <label className="field">
      {t("Flowise server")}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{t("Default")}</option>
        {instances.map((id) => (
          <option key={id}>{id}</option>
        ))}
      </select>
    </label>
  );
}
