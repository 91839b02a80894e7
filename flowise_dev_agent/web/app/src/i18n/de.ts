export { default as texts } from "../../../../texts/de.json";
export { default as words } from "./de.json";
