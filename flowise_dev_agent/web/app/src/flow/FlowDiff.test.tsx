import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import { ChangeList } from "./FlowDiff";
import { NodeDetails } from "./NodeDetails";
import { OpList } from "./ops";
import { change, node } from "./sample";

const EVIL = `<img src=x onerror="window.hurt = true"><script>window.hurt = true</script>`;

test("P70: texts of a flow are shown as text everywhere", () => {
  const evil = node("a", { label: EVIL, note: EVIL, params: [{ name: "q", label: EVIL, value: EVIL, cut: false }] });
  const fields = [{ name: "p", before: "", after: EVIL }];
  const { diff } = change({ diff: { changed: [{ id: "a", name: "a", label: EVIL, fields }] } });
  const { container } = render(
    <>
      <ChangeList diff={diff} />
      <OpList ops={[{ op_type: "SetParam", node_id: "a", param_name: "p", value: EVIL }]} />
      <NodeDetails marked={{ node: evil, mark: "changed", fields }} onClose={() => {}} />
    </>,
  );
  expect(container.textContent).toContain(EVIL);
  expect(container.querySelector("script, img")).toBeNull();
  expect("hurt" in window).toBe(false);
});

test("details show the two values of a field in full", () => {
  const long = "Answer as a pirate. ".repeat(50);
  render(
    <NodeDetails
      marked={{
        node: node("a", { params: [{ name: "prompt", label: "Prompt", value: long, cut: false }] }),
        before: node("a", { params: [{ name: "prompt", label: "Prompt", value: "Be kind.", cut: false }] }),
        mark: "changed",
        fields: [{ name: "prompt", before: "Be kind.", after: "Answer as a…" }],
      }}
      onClose={() => {}}
    />,
  );
  const marked = (kind: string) => [...document.querySelectorAll(kind)].map((one) => one.textContent).join("");
  expect(marked("ins").length).toBeGreaterThan(long.length / 2);
  expect(marked("del")).toContain("kind");
});
