/** What the interrupts of each type carry in `data`. */
import type { Answer, InterruptView, SessionView } from "../../api/types";

export interface Option {
  value: string;
  label: string;
  description: string;
}

export interface Question<Data = Record<string, unknown>> extends Omit<InterruptView, "options" | "data"> {
  options: Option[];
  data: Data;
}

/** What a form gets: it draws the question and hands over an answer. */
export interface FormProps<Data> {
  question: Question<Data>;
  session: SessionView;
  busy: boolean;
  send: (answer: Answer) => void;
}

export interface Finding {
  code: string;
  severity: string;
  message: string;
  where?: string | null;
  hint?: string | null;
}

export interface ChangeSummary {
  summary?: string;
  text?: string;
}

export interface TestResult {
  question: string;
  trial: number;
  passed: boolean;
  answer: string;
  category: string | null;
  error: string;
  duration_ms: number | null;
  used_tools: string[];
}

export interface Clarification {
  questions: string[];
}

export interface Candidate {
  id: string;
  name: string;
  type: string;
  nodes: number;
  updated: string;
  deployed: boolean;
  node_types: string[];
}

export interface SelectTarget {
  candidates: Candidate[];
}

export interface PlanApproval {
  plan: string;
  contract: { test_questions: string[]; flow_name: string };
  approaches: { label: string; description: string }[];
  missing_credentials: string[];
  target?: { id: string; name: string } | null;
  notes?: string[];
}

export interface CredentialCheck {
  credentials: { type: string; candidates: { id: string; name: string }[] }[];
}

export interface PatchReview {
  change: ChangeSummary;
  meanwhile: ChangeSummary | null;
  ops: Record<string, unknown>[];
  findings: Finding[];
  budget: { tokens?: number; usd?: number };
}

export interface ResultReview {
  chatflow: { id: string; name: string; url: string };
  draft: { id: string; url: string } | null;
  write_mode: string | null;
  verdict: { done?: boolean; reason?: string; fix?: string; notes?: string[]; category?: string | null };
  tests: TestResult[];
  baseline: TestResult[];
  regressions: { question: string; worse: boolean }[];
  change: ChangeSummary | null;
  notes: string[];
  warnings: Finding[];
  placeholders: string[];
}
