/** What can be done in the view that is open, by its name, for the command palette. */
type Actions = Record<string, (() => void) | null>;

let offered: Actions = {};

/** Offer actions until the returned function is called; null is one that cannot be done now. */
export function offerActions(actions: Actions): () => void {
  offered = actions;
  return () => {
    offered = {};
  };
}

export const actionsNow = (): [string, () => void][] =>
  Object.entries(offered).flatMap(([name, act]) => (act ? [[name, act]] : []));
