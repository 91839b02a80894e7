import { t } from "../i18n";
import { Connection } from "../ui/Connect";

/** What a new service lacks, in the order in which it is needed. */
export function FirstRun() {
  return (
    <section className="note warn first-run" aria-labelledby="first-run-title">
      <h2 id="first-run-title" className="small-title">
        {t("Before you start")}
      </h2>
      <ol className="plain">
        <li>
          <strong>{t("1. A Flowise server")}</strong>
          <Connection kind="flowise" />
        </li>
        <li>
          <strong>{t("2. A model that plans (optional)")}</strong>
          <Connection kind="model" />
        </li>
      </ol>
    </section>
  );
}
