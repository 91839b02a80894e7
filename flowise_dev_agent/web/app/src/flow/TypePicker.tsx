/** What can go to a place of a flow: nodes that are there, and types of nodes, the most used ones first. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Command } from "cmdk";
import { useContext, useDeferredValue, useEffect, useRef, useState } from "react";
import { typesFor } from "../api/queries";
import type { CanvasNode } from "../api/types";
import { t } from "../i18n";
import { ErrorNote } from "../ui/ErrorNote";
import { MOST_SEARCHED, searched, tooLong } from "../ui/tooLong";
import { BuildingContext, classesOf, fits, isStep, leadsBack, type Place } from "./building";

interface Props {
  place: Place;
  nodes: CanvasNode[];
  instance: string;
  onType: (name: string) => void;
  /** A node that is there already. */
  onNode: (node: CanvasNode) => void;
  onClose: () => void;
}

export function TypePicker({ place, nodes, instance, onType, onNode, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const query = useDeferredValue(searched(text));
  const steps = nodes.some(isStep);
  const building = useContext(BuildingContext);
  const goesBack = (node: CanvasNode) =>
    place.kind === "output" && building !== null && leadsBack(building, place.node, node);
  const found = useQuery({ ...typesFor(instance, query, filterOf(place, steps)), placeholderData: keepPreviousData });
  const types = (found.data?.nodes ?? []).filter(
    (one) =>
      !one.deprecated &&
      (place.kind === "free" || one.name !== "startAgentflow") &&
      (nodes.length === 0 || place.kind !== "free" || (one.kind === "AGENTFLOW") === steps),
  );
  const here = thereFor(place, nodes).filter((one) => one.label.toLowerCase().includes(query.toLowerCase()));
  useEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector("input")?.focus();
  }, []);
  const chosen = (act: () => void) => () => {
    dialog.current?.close();
    act();
  };
  const title = titleOf(place);
  const there = here.length > 0 && (
    <Command.Group key="there" heading={t("In this flow")}>
      {here.map((node) => (
        <Command.Item key={node.id} value={`node ${node.id}`} onSelect={chosen(() => onNode(node))}>
          <span className="clip grow">{goesBack(node) ? t("Back to {{node}}", { node: node.label }) : node.label}</span>
          <small className="for-experts">{node.id}</small>
        </Command.Item>
      ))}
    </Command.Group>
  );
  const fresh = types.length > 0 && (
    <Command.Group key="new" heading={t("New node")}>
      {types.map((one) => (
        <Command.Item key={one.name} value={one.name} onSelect={chosen(() => onType(one.name))}>
          <span className="clip grow">{one.label}</span>
          <small>{one.category}</small>
        </Command.Item>
      ))}
    </Command.Group>
  );
  // Behind a step a new one is meant more often than a line to one that is there.
  const newFirst = place.kind === "output";
  const groups = newFirst ? [fresh, there] : [there, fresh];
  const ids = [here.map((node) => `node ${node.id}`), types.map((one) => one.name)];
  // The first of what is found now, unless another one is chosen.
  const shown = (newFirst ? ids.toReversed() : ids).flat();
  const [selected, select] = useState("");
  return (
    <dialog ref={dialog} className="palette" aria-label={title} onClose={onClose}>
      <Command
        label={title}
        shouldFilter={false}
        loop
        value={shown.includes(selected) ? selected : (shown[0] ?? "")}
        onValueChange={select}
      >
        <Command.Input placeholder={title} value={text} onValueChange={setText} />
        <p role="alert" className="problem">
          {tooLong(text, MOST_SEARCHED)}
        </p>
        <ErrorNote error={found.error} />
        <Command.List label={t("Found")}>
          <Command.Empty>{found.isPending ? t("Loading…") : t("Nothing found.")}</Command.Empty>
          {groups}
        </Command.List>
      </Command>
    </dialog>
  );
}

function filterOf(place: Place, steps: boolean): { accepting?: string; category?: string } {
  if (place.kind === "input" && !isStep(place.node)) return { accepting: classesOf(place.port).join("|") };
  if (place.kind === "replace") return { category: place.node.category };
  return place.kind === "free" && !steps ? {} : { category: "Agent Flows" };
}

function thereFor(place: Place, nodes: CanvasNode[]): CanvasNode[] {
  if (place.kind === "input")
    return nodes.filter((one) => one.outputs.some((output) => fits(one, output, place.node, place.port)));
  if (place.kind === "output")
    return nodes.filter((one) => one.inputs.some((input) => fits(place.node, place.port, one, input)));
  return [];
}

function titleOf(place: Place): string {
  switch (place.kind) {
    case "input":
      return t("What goes into {{input}} of {{node}}?", {
        input: place.port.label || t("this step"),
        node: place.node.label,
      });
    case "output":
      return t("What follows {{node}}?", { node: place.node.label });
    case "line":
      return t("Which step goes in between?");
    case "replace":
      return t("What takes the place of {{node}}?", { node: place.node.label });
    default:
      return t("Which node?");
  }
}
