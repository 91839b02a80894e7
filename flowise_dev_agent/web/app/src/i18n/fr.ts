export { default as texts } from "../../../../texts/fr.json";
export { default as words } from "./fr.json";
