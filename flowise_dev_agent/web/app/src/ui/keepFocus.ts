/** The keyboard never starts again at the top of the page because what had the focus is gone. */

const GONE = ":disabled, [hidden], [hidden] *";

const UNUSED = "body, [tabindex='-1'], dialog:not([open]) *";

/** True when nothing that can be used has the focus: another part may take it. */
export const focusIsFree = (): boolean => document.activeElement?.matches(UNUSED) ?? true;

/** To the button that opened what is closed now; to the one of its menu when that is closed too. */
export function focusBack(opener: HTMLElement | null): void {
  if (!opener || !focusIsFree()) return;
  const menu = opener.closest("[popover]");
  const shown = opener.checkVisibility()
    ? opener
    : document.querySelector<HTMLElement>(`[popovertarget="${menu?.id}"]`);
  shown?.focus();
}

/**
 * Watches the page until it is closed. What lost the focus because it was switched off gets it back when it is on again;
 * when it was removed, the closest part of the page around it that is still there gets it.
 */
export function keepFocus(root: HTMLElement): void {
  let last: HTMLElement | null = null;
  let around: HTMLElement[] = [];
  let switchedOff = false;
  let looking = false;

  document.addEventListener("focusin", ({ target }) => {
    last = target as HTMLElement;
    switchedOff = false;
    around = [];
    for (let one = last.parentElement; one && one !== root && one !== document.body; one = one.parentElement)
      around.push(one);
  });
  const look = () => {
    looking = false;
    if (!last || document.activeElement !== document.body) return;
    if (last.isConnected) {
      const off = last.matches(GONE);
      // Pressing on nothing gives the focus away too, and is meant.
      if (!off && switchedOff) last.focus({ preventScroll: true });
      switchedOff = off;
      return;
    }
    const near = around.find((one) => one.isConnected && one.getClientRects().length > 0);
    const place = near ?? document.getElementById("main");
    if (place && place.tabIndex < 0) place.tabIndex = -1;
    place?.focus({ preventScroll: true });
  };
  new MutationObserver(() => {
    if (!looking) requestAnimationFrame(look);
    looking = true;
  }).observe(document.body, { subtree: true, childList: true, attributeFilter: ["disabled", "hidden"] });
}
