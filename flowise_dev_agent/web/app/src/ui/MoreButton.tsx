import type { ReactNode } from "react";

interface Props {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
  plain?: boolean;
  children: ReactNode;
}

/** Loads the next page of a list, while there is one. */
export function MoreButton({ list, plain = false, children }: Props) {
  if (!list.hasNextPage) return null;
  return (
    <div>
      <button
        type="button"
        className={plain ? "button plain" : "button"}
        disabled={list.isFetchingNextPage}
        onClick={() => list.fetchNextPage()}
      >
        {children}
      </button>
    </div>
  );
}
