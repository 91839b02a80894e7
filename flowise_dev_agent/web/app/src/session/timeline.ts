/** A session's events as steps with their duration, cost and reasons, its tests, and what it does now. */
import type { SessionEvent } from "../api/types";
import { t } from "../i18n";
import { worded } from "../i18n/texts";
import { activity } from "./words";

type EventOf<Type extends SessionEvent["type"]> = Extract<SessionEvent, { type: Type }>;
type Test = EventOf<"test">["data"];

export interface Note {
  seq: number;
  type: SessionEvent["type"];
  text: string;
  /** Of an error. */
  code: string | null;
  /** Of a decision: every option, chosen or not. */
  candidates: EventOf<"decision">["data"]["candidates"];
}

export interface Step {
  seq: number;
  node: string;
  phase: string;
  /** `restarted`: the worker was lost, and another one repeats the step. */
  state: "running" | "done" | "waiting" | "failed" | "restarted";
  since: string;
  /** Working time, without the time that the person took to answer; null until measured. */
  durationMs: number | null;
  tokens: { input: number; output: number; usd: number };
  notes: Note[];
}

export interface PhaseGroup {
  phase: string;
  state: Step["state"];
  durationMs: number;
  steps: Step[];
}

export interface Timeline {
  groups: PhaseGroup[];
  /** Of the newest test run. */
  tests: Test[];
  /** The step that runs now. */
  running: Step | null;
}

/** Fold the stored events of a session, in order. */
export function timelineOf(events: readonly SessionEvent[]): Timeline {
  const steps: Step[] = [];
  let tests: Test[] = [];

  for (const event of events) {
    const open = steps.at(-1);
    switch (event.type) {
      case "node_start": {
        // After an answer the same node runs again; this is one step, not two.
        if (open?.state === "waiting" && open.node === event.node) {
          open.state = "running";
          open.since = event.ts;
          break;
        }
        if (open?.state === "running") open.state = "restarted";
        // Another attempt after an outage.
        if (open?.state === "failed" && open.node === event.node) {
          open.state = "running";
          open.since = event.ts;
          break;
        }
        steps.push(newStep(event));
        if (event.node === "test_v2") tests = [];
        break;
      }
      case "node_end":
      case "node_error": {
        const step = open?.node === event.node ? open : undefined;
        if (!step) break;
        step.state = event.type === "node_end" ? "done" : "failed";
        step.durationMs = (step.durationMs ?? 0) + (event.duration_ms ?? 0);
        if (event.type === "node_error") tell(step, note(event));
        break;
      }
      case "interrupt": {
        if (open) open.state = "waiting";
        break;
      }
      case "error": {
        if (open?.state === "running") open.state = "failed";
        if (open && !open.notes.some((one) => one.code === event.data.code)) open.notes.push(note(event));
        break;
      }
      case "done": {
        if (open && (open.state === "running" || open.state === "waiting")) open.state = "done";
        break;
      }
      case "test": {
        tests.push(event.data);
        open?.notes.push(note(event));
        break;
      }
      case "cost": {
        if (!open) break;
        open.tokens.input += event.data.input_tokens;
        open.tokens.output += event.data.output_tokens;
        open.tokens.usd += event.data.usd;
        break;
      }
      case "retry":
        if (open) tell(open, note(event));
        break;
      case "node_artifact:persisted":
        // The milestones show what matters of them.
        break;
      default:
        open?.notes.push(note(event));
    }
  }
  const last = steps.at(-1);
  return { groups: groupsOf(steps), tests, running: last?.state === "running" ? last : null };
}

/** Why a step takes longer, and how far it is with what it writes, such as the files of a document store. */
const TOLD = new Set<SessionEvent["type"]>(["retry", "fallback", "write"]);

/** What the session does now, in words. */
export function currentActivity(timeline: Timeline): string {
  const { running } = timeline;
  if (!running) return t("Waiting for its turn");
  const newest = running.notes.findLast((one) => TOLD.has(one.type));
  return newest ? `${activity(running.node)} (${newest.text})` : activity(running.node);
}

function newStep(event: SessionEvent): Step {
  return {
    seq: event.seq ?? 0,
    node: event.node ?? "",
    phase: event.phase ?? "",
    state: "running",
    since: event.ts,
    durationMs: null,
    tokens: { input: 0, output: 0, usd: 0 },
    notes: [],
  };
}

function note(event: SessionEvent): Note {
  const decision = event.type === "decision" ? event.data : null;
  return {
    seq: event.seq ?? 0,
    type: event.type,
    text: decision?.why ? worded(decision, "why") : summaryOf(event),
    code: event.type === "error" || event.type === "node_error" ? event.data.code : null,
    candidates: decision?.candidates ?? [],
  };
}

/** The code of its summary is with its data. */
const summaryOf = ({ summary, data }: SessionEvent): string => worded({ summary, texts: data.texts }, "summary");

/** Attempts of a step fail alike: the newest is told in place of the one before, and why only once. */
function tell(step: Step, told: Note): void {
  const others = step.notes.filter((one) => one.type !== told.type);
  step.notes =
    told.type === "retry"
      ? [...others.filter(({ type, text }) => type !== "node_error" || !told.text.endsWith(text)), told]
      : [...others.map((one) => ({ ...one, text: one.text.replace(`: ${told.text}`, "") })), told];
}

/** Consecutive steps of one phase form a group. */
function groupsOf(steps: Step[]): PhaseGroup[] {
  const groups: PhaseGroup[] = [];
  for (const step of steps) {
    let group = groups.at(-1);
    if (group?.phase !== step.phase) {
      group = { phase: step.phase, state: step.state, durationMs: 0, steps: [] };
      groups.push(group);
    }
    group.steps.push(step);
    group.state = step.state;
    group.durationMs += step.durationMs ?? 0;
  }
  return groups;
}

/** How the question was answered: the reason of the session's next decision; null before it. */
export function answerTo(events: readonly SessionEvent[], interruptId: string): string | null {
  const asked = events.findIndex((event) => event.type === "interrupt" && event.data.interrupt_id === interruptId);
  if (asked < 0) return null;
  const next = events.slice(asked + 1).find((event) => event.type === "decision" || event.type === "done");
  return next ? note(next).text : null;
}
