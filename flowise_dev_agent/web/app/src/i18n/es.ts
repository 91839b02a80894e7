export { default as texts } from "../../../../texts/es.json";
export { default as words } from "./es.json";
