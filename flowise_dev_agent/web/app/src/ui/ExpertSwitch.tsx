import { useState } from "react";
import { t } from "../i18n";
import { isExpert, keepExpert } from "./expert";

/** Types and ids of nodes, for people who know Flowise. */
export function ExpertSwitch() {
  const [expert, setExpert] = useState(isExpert);
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={expert}
        onChange={({ target }) => {
          keepExpert(target.checked);
          setExpert(target.checked);
        }}
      />
      {t("I know Flowise: show types and ids")}
    </label>
  );
}
