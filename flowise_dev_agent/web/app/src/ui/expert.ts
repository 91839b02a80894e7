/** Types and ids of nodes are for people who know Flowise: shown when the person asks for them, kept by the browser. */
const KEPT = "flowise-dev-agent-expert";

export const isExpert = (): boolean => localStorage.getItem(KEPT) === "yes";

/** Elements of the class `for-experts` are hidden from others. */
export function showToExperts(expert = isExpert()): void {
  if (expert) document.documentElement.dataset.expert = "";
  else delete document.documentElement.dataset.expert;
}

export function keepExpert(expert: boolean): void {
  if (expert) localStorage.setItem(KEPT, "yes");
  else localStorage.removeItem(KEPT);
  showToExperts(expert);
}
