const field = () => document.querySelector<HTMLTextAreaElement>("#requirement");

/**
 * What was typed into the page's head start, before its program was there. The function that comes back is to be called
 * when the page is drawn: it adds the text to what the field holds by then, and gives it the focus that it had.
 */
export function earlyTyping(): () => void {
  const early = field();
  const focused = early !== null && document.activeElement === early;
  return () => {
    const drawn = field();
    if (!early || !drawn) return;
    const { length } = drawn.value;
    if (focused) drawn.focus();
    if (!early.value) return;
    drawn.setRangeText(early.value, length, length, "end");
    drawn.setSelectionRange(length + early.selectionStart, length + early.selectionEnd);
    drawn.dispatchEvent(new Event("input", { bubbles: true }));
  };
}
