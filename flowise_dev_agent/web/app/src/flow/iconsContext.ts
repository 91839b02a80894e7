import { createContext } from "react";

/** False where icons cannot be asked for: on pages for people without a key. */
export const IconsContext = createContext(false);
