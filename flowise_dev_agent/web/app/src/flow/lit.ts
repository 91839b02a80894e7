/** Which nodes of the picture a text beside it points at. */
import { createContext, useContext } from "react";

interface Lit {
  ids: readonly string[];
  /** Point at these nodes; at none again with an empty list. */
  light: (ids: readonly string[]) => void;
  /** Show them: on a phone the picture is another view. */
  show: (ids: readonly string[]) => void;
}

export const LitContext = createContext<Lit>({ ids: [], light: () => {}, show: () => {} });

/** Properties of a button that points at nodes while it is hovered or focused, and shows them when it is pressed. */
export function usePointer() {
  const { light, show } = useContext(LitContext);
  return (ids: readonly string[]) => ({
    onMouseEnter: () => light(ids),
    onMouseLeave: () => light([]),
    onFocus: () => light(ids),
    onBlur: () => light([]),
    onClick: () => show(ids),
  });
}
