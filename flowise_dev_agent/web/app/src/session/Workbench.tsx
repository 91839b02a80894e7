import { type ReactNode, useId } from "react";
import { Group, Panel, Separator, useDefaultLayout } from "react-resizable-panels";
import { t } from "../i18n";
import "./workbench.css";

/** What a phone shows; on a wider window chat and picture are side by side, and "try" opens below the picture. */
export type View = "chat" | "picture" | "try";

/** True where chat and picture are two views: keep it the same as in workbench.css. */
export const isNarrow = (): boolean => matchMedia("(max-width: 760px)").matches;

interface Props {
  header: ReactNode;
  talk: ReactNode;
  picture: ReactNode;
  /** The chat with the flow; null while there is nothing to ask. */
  tryOut: ReactNode | null;
  /** Below the picture, on a phone. */
  bar?: ReactNode;
  /** The picture is what the page is for. */
  draws?: boolean;
  view: View;
  onView: (view: View) => void;
}

/** The workbench: the conversation on the left, the picture on the right, a divider that the browser remembers. */
export function Workbench({ header, talk, picture, tryOut, bar, draws = false, view, onView }: Props) {
  const layout = useDefaultLayout({ id: `flowise-dev-agent-workbench${draws ? "-flow" : ""}`, storage: localStorage });
  const id = useId();
  const views: [View, string][] = [
    ["chat", t("Chat")],
    ["picture", t("Picture")],
    ...(tryOut ? [["try", t("Try")] as [View, string]] : []),
  ];
  return (
    <div className="workbench" data-view={view}>
      {header}
      <fieldset className="workbench-views">
        <legend className="visually-hidden">{t("View")}</legend>
        {views.map(([value, name]) => (
          <button key={value} type="button" aria-pressed={view === value} onClick={() => onView(value)}>
            {name}
          </button>
        ))}
      </fieldset>
      <Group id={id} className="workbench-panes" orientation="horizontal" {...layout}>
        <Panel id="talk" defaultSize={draws ? "28%" : "42%"} minSize="300px">
          <section className="talk" aria-label={t("Conversation")}>
            {talk}
          </section>
        </Panel>
        <Separator className="divider" aria-label={t("Width of the conversation")} />
        <Panel id="drawing" minSize="300px">
          <div className="drawing">
            <section className="picture" aria-label={t("Picture of the flow")}>
              {picture}
            </section>
            {tryOut && view === "try" && (
              <section className="try-pane" aria-label={t("Try")}>
                <h2 className="visually-hidden">{t("Try it")}</h2>
                {tryOut}
                <button
                  type="button"
                  className="button plain close-try"
                  aria-label={t("Close the chat with the flow")}
                  onClick={() => onView("picture")}
                >
                  ✕
                </button>
              </section>
            )}
          </div>
        </Panel>
      </Group>
      {bar}
    </div>
  );
}
