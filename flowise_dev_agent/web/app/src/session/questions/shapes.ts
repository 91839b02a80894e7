/** The `data` of each interrupt type. */
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

/** Props of a question form. */
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

export interface PlanContract {
  flow_name: string;
  goal: string;
  nodes: { node_id: string; node_name: string; purpose: string }[];
  removals: string[];
  steps: string[];
  credential_requirements: string[];
  pii_fields: string[];
  placeholders: string[];
  success_criteria: string[];
  test_questions: string[];
}

export interface PlanApproval {
  contract: PlanContract;
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
