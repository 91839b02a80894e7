import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from "react";

export interface Tab {
  name: string;
  content: ReactNode;
}

/** Tabs by the ARIA pattern, with arrow keys. Only the selected panel is rendered. */
export function Tabs({ label, tabs, start = 0 }: { label: string; tabs: Tab[]; start?: number }) {
  const [chosen, setChosen] = useState(start);
  const id = useId();
  const buttons = useRef<(HTMLButtonElement | null)[]>([]);
  const current = Math.min(chosen, tabs.length - 1);

  function keyed(event: KeyboardEvent) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (current + step + tabs.length) % tabs.length;
    setChosen(next);
    buttons.current[next]?.focus();
  }

  return (
    <div className="tabs">
      <div role="tablist" aria-label={label} onKeyDown={keyed}>
        {tabs.map((tab, index) => (
          <button
            key={tab.name}
            ref={(element) => {
              buttons.current[index] = element;
            }}
            type="button"
            role="tab"
            id={`${id}-${index}`}
            aria-selected={index === current}
            aria-controls={`${id}-panel`}
            tabIndex={index === current ? 0 : -1}
            onClick={() => setChosen(index)}
          >
            {tab.name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`}>
        {tabs[current]?.content}
      </div>
    </div>
  );
}
