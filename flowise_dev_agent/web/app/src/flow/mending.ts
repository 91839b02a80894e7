/** What is wrong with a flow that is built by hand, and where it is mended. */
import type { CanvasNode, Finding, FlowPreview } from "../api/types";
import { findingText } from "../i18n/texts";
import { isStep, type Place, portName } from "./building";

/** Asked for by the session before it writes. */
const LATER = new Set(["CREDENTIAL_UNBOUND", "NESTED_CREDENTIAL_UNBOUND"]);

/** What the changes made wrong, at a node and not at one of the changes. */
export const newFindings = (drawn: FlowPreview | undefined): Finding[] =>
  drawn?.findings.filter((one) => one.origin !== "base" && one.op_index === null) ?? [];

/** What is marked at a node: what is new, and what keeps the flow from working as it is. */
export const findingsAtNodes = (drawn: FlowPreview | undefined): Finding[] =>
  drawn?.findings.filter((one) => one.op_index === null && (one.origin !== "base" || one.severity === "error")) ?? [];

/** What must be mended before the flow can be built. */
export const blocking = (drawn: FlowPreview | undefined): Finding[] =>
  newFindings(drawn).filter((one) => one.severity === "error" && !LATER.has(one.code));

/** The place at which a node is to be added; undefined for what is mended in a field. */
export function placeOf({ code, field }: Finding, node: CanvasNode): Place | undefined {
  const input = code === "REQUIRED_ANCHOR_UNCONNECTED" && node.inputs.find((one) => one.name === field);
  if (input) return { kind: "input", node, port: input };
  const branch = isStep(node) && /^\d+$/.test(field) ? node.outputs[Number(field)] : undefined;
  const output = branch ?? (code === "DEAD_END" ? node.outputs[0] : undefined);
  return output && { kind: "output", node, port: output };
}

/** True for what is wrong with the steps before a step: one of them leads somewhere else. */
export const isJoin = ({ code }: Finding): boolean => code === "STEP_NEVER_RUNS" || code === "STEP_RUNS_TWICE";

/** A finding as it is read at its node, with the name of the branch that it is about. */
export function saidAt(finding: Finding, node: CanvasNode): string {
  const place = placeOf(finding, node);
  const branch = place?.kind === "output" ? portName(node, "outputs", node.outputs.indexOf(place.port)) : "";
  return branch ? `${branch}: ${findingText(finding)}` : findingText(finding);
}

/** The field of the open form that is at a path, or the nearest one around it. */
export function fieldAt(path: string): HTMLElement | null {
  for (let at = path; at; at = at.replace(/[.[]?[^.[]*$/, "")) {
    const found = document.querySelector<HTMLElement>(`.node-form [data-field="${CSS.escape(at)}"]`);
    if (found) return found;
  }
  return null;
}

/** Show a field and give it the focus, folded away or not. */
export function goTo(path: string): void {
  const field = fieldAt(path);
  for (let around = field?.closest("details"); around; around = around.parentElement?.closest("details") ?? null)
    around.open = true;
  const control = field?.querySelector<HTMLElement>(
    "input:not([type=hidden]), select, textarea, [data-typing], button",
  );
  field?.scrollIntoView({ block: "center" });
  (control?.shadowRoot?.querySelector<HTMLElement>("[contenteditable]") ?? control)?.focus();
}
