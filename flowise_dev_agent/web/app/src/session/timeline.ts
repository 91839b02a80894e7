/** A session's events as a person reads them: steps with what they took, why they led on, tests, what happens now. */
import type { SessionEvent } from "../api/types";
import { doing } from "./words";

export interface Candidate {
  to: string;
  why: string;
  fits: boolean;
}

export interface Note {
  seq: number;
  type: string;
  text: string;
  /** Of a decision: all candidates there were. */
  candidates: Candidate[];
}

export interface Step {
  seq: number;
  node: string;
  phase: string;
  /** `stopped`: its process was lost, and the work was taken up again. */
  state: "running" | "done" | "waiting" | "failed" | "stopped";
  since: string;
  /** Work without the time that a person took; null while nothing is measured. */
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

export interface AskedQuestion {
  seq: number;
  question: string;
  answer: string;
  passed: boolean;
  durationMs: number | null;
  trial: number;
  category: string | null;
  /** Asked of the flow as it was before the change. */
  before: boolean;
}

export interface Timeline {
  groups: PhaseGroup[];
  /** Of the newest round of tests. */
  tests: AskedQuestion[];
  /** The step that runs now. */
  running: Step | null;
  /** What was decided last, in words. */
  decision: Note | null;
}

/** Fold the stored events of a session, in order. */
export function timelineOf(events: readonly SessionEvent[]): Timeline {
  const steps: Step[] = [];
  let tests: AskedQuestion[] = [];
  let decision: Note | null = null;

  for (const event of events) {
    const open = steps.at(-1);
    switch (event.type) {
      case "node_start": {
        // After an answer the same node runs again: that is one step, not two.
        if (open?.state === "waiting" && open.node === event.node) {
          open.state = "running";
          open.since = event.ts;
          break;
        }
        if (open?.state === "running") open.state = "stopped";
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
        if (event.type === "node_error") step.notes.push(note(event));
        break;
      }
      case "interrupt": {
        if (open) open.state = "waiting";
        break;
      }
      case "error": {
        if (open?.state === "running") open.state = "failed";
        if (open && open.notes.at(-1)?.text !== event.summary) open.notes.push(note(event));
        break;
      }
      case "done": {
        if (open && (open.state === "running" || open.state === "waiting")) open.state = "done";
        break;
      }
      case "test": {
        const test = asked(event);
        tests.push(test);
        open?.notes.push(note(event));
        break;
      }
      case "cost": {
        if (!open) break;
        open.tokens.input += amount(event.data.input_tokens);
        open.tokens.output += amount(event.data.output_tokens);
        open.tokens.usd += amount(event.data.usd);
        break;
      }
      default: {
        const found = note(event);
        if (event.type === "decision") decision = found;
        open?.notes.push(found);
      }
    }
  }
  const last = steps.at(-1);
  return { groups: groupsOf(steps), tests, running: last?.state === "running" ? last : null, decision };
}

/** One sentence about what happens now, for the eye and for screen readers. */
export function nowOf(timeline: Timeline): string {
  const { running } = timeline;
  if (!running) return "Waiting for a free worker";
  const round = running.notes.findLast((one) => one.type === "retry" || one.type === "fallback");
  return round ? `${doing(running.node)} (${round.text})` : doing(running.node);
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
  const candidates = Array.isArray(event.data.candidates) ? (event.data.candidates as Candidate[]) : [];
  // A decision says "a → b: why"; on the page the step stands beside it already.
  const text = event.type === "decision" ? event.summary.replace(/^\w+ → \w+: /, "") : event.summary;
  return { seq: event.seq ?? 0, type: event.type, text, candidates };
}

function asked(event: SessionEvent): AskedQuestion {
  const { question, answer, passed, duration_ms, before, trial, category } = event.data;
  return {
    seq: event.seq ?? 0,
    question: typeof question === "string" ? question : event.summary.replace(/^(before: )?[\w]+: /, ""),
    answer: typeof answer === "string" ? answer : "",
    passed: passed === true,
    durationMs: typeof duration_ms === "number" ? duration_ms : null,
    trial: typeof trial === "number" ? trial : 1,
    category: typeof category === "string" ? category : null,
    before: before === true,
  };
}

const amount = (value: unknown): number => (typeof value === "number" ? value : 0);

/** Steps that follow each other in one phase stand together. */
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

/** How the question was answered, from what the session decided next; null while it has not. */
export function answerTo(events: readonly SessionEvent[], interruptId: string): string | null {
  const asked = events.findIndex((event) => event.type === "interrupt" && event.data.interrupt_id === interruptId);
  if (asked < 0) return null;
  const next = events.slice(asked + 1).find((event) => event.type === "decision" || event.type === "done");
  return next ? note(next).text : null;
}
