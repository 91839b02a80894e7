import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { flowReach } from "../api/queries";
import { ReachButton } from "../flow/ReachButton";
import { t } from "../i18n";

interface Props {
  chatflowId: string;
  instance: string | undefined;
}

/** The accepted flow: where its chat is, and how to give it to people. */
export function Live({ chatflowId, instance }: Props) {
  const { data } = useQuery(flowReach(chatflowId, instance));
  const card = useRef<HTMLElement>(null);
  const known = Boolean(data);
  // What comes next must not be below the end of the conversation.
  useEffect(() => {
    if (known) card.current?.scrollIntoView?.({ block: "nearest" });
  }, [known]);
  if (!data) return null;
  return (
    <section ref={card} className="card stack tight live" aria-labelledby="live-title">
      <h2 id="live-title">{data.deployed ? t("Your bot is live") : t("Your bot is written and not deployed")}</h2>
      {data.chat_url && (data.starts === "chat" || data.starts === "form") && (
        <p>
          <a href={data.chat_url} target="_blank" rel="noopener noreferrer" className="words">
            {data.chat_url}
          </a>
          <br />
          <small>
            {data.public
              ? t("Everyone who has the link can chat.")
              : t("Only people with an account in this Flowise can open it.")}
          </small>
        </p>
      )}
      <div className="row">
        <ReachButton chatflowId={chatflowId} instance={instance} className="button primary" />
        <Link href={`/history/${chatflowId}`} className="button plain">
          {t("Undo it in the history")}
        </Link>
      </div>
    </section>
  );
}
