import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ComponentType } from "react";
import { afterEach, expect, it, vi } from "vitest";
import type { Action, Answer, Finding, Interrupt, InterruptOf, Option, Plan, SessionView } from "../../api/types";
import { questionTitle } from "../questionTitles";
import { ClarificationForm } from "./Clarification";
import { CredentialCheckForm } from "./CredentialCheck";
import type { FormProps } from "./controls";
import { PatchReviewForm } from "./PatchReview";
import { PlanApprovalForm } from "./PlanApproval";
import { ResultReviewForm } from "./ResultReview";
import { TargetPicker } from "./TargetPicker";

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  vi.unstubAllGlobals();
});

const option = (value: Action, label: string, description = "") => ({ value, label, description });
const CANCEL = option("cancel", "Cancel", "End it.");
const SESSION = {
  thread_id: "s1",
  instance: "default",
  requirement: "A bot",
  operation_mode: "create",
  degraded: [] as SessionView["degraded"],
  totals: { input_tokens: 900, output_tokens: 100, usd: 0.5 },
} as SessionView;

/** Render the form of a question with this data; `sent` collects its answers. */
function show<Question extends Interrupt>(
  Form: ComponentType<FormProps<Question>>,
  data: Partial<Question["data"]>,
  options: Option[],
  reason = "",
  served: Record<string, unknown> = {},
) {
  vi.stubGlobal("fetch", ({ url }: Request) => {
    const found = served[new URL(url).pathname];
    return found ? Promise.resolve(Response.json(found)) : new Promise(() => {});
  });
  const sent: Answer[] = [];
  const question = { id: "i1", reason, message: "", data: { truncated: [], ...data }, options } as unknown as Question;
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Form question={question} session={SESSION} busy={false} send={(answer) => sent.push(answer)} />
    </QueryClientProvider>,
  );
  const press = (name: string) => userEvent.click(screen.getByRole("button", { name }));
  return { sent, press };
}

it("sends answers in the order of the questions, empty when left open", async () => {
  const { sent, press } = show(ClarificationForm, { questions: ["For whom?", "With what?"] }, [
    option("answer", "Answer"),
    option("go_on", "Go on"),
  ]);
  await userEvent.type(screen.getByLabelText("With what?"), " documents ");
  await press("Answer");
  await press("Go on");
  expect(sent).toEqual([{ action: "answer", answers: ["", "documents"] }, { action: "go_on" }]);
});

const SOURCES = {
  properties: {
    name: { type: "string", title: "Name", maxLength: 120 },
    sources: {
      title: "Sources",
      items: { properties: { text: { type: "string", title: "Text", maxLength: 32_000 } } },
    },
  },
  required: ["name"],
};

it("asks first for what the form of a starter lacks, and sends it once it is there", async () => {
  const form = { name: "Desk", kind: "chat", sources: [{ kind: "text", text: "" }] };
  const starter = { id: "text", title: "Answers from a text", words: [], names: [], needs: ["sources.0.text"], form };
  const { sent, press } = show(
    PlanApprovalForm,
    { ...PLAN, approaches: [], form, starter } as unknown as InterruptOf<"plan_approval">["data"],
    [option("request_changes", "Complete the form"), CANCEL],
    "starter",
    { "/designs/schema": SOURCES },
  );
  const text = await screen.findByLabelText("Text");
  expect(document.activeElement).toBe(text);
  expect(screen.getByText("Still needed")).toBeDefined();
  await press("Complete the form");
  expect(sent).toEqual([]);
  await userEvent.type(text, "Open from 9 to 5.");
  await press("Complete the form");
  expect(sent).toEqual([
    { action: "request_changes", design: { name: "Desk", sources: [{ text: "Open from 9 to 5." }] } },
  ]);
  // Words choose anew.
  await userEvent.type(screen.getByLabelText("Or say it in other words"), "a tutor");
  await press("Say it anew");
  expect(sent[1]).toEqual({ action: "request_changes", feedback: "a tutor" });
});

const PLAN = {
  contract: {
    flow_name: "Bot",
    goal: "Goal",
    nodes: [{ node_id: "chatOpenAI_0", node_name: "chatOpenAI", purpose: "<b>answers</b>" }],
    removals: [],
    steps: ["one"],
    credential_requirements: ["openAIApi"],
    pii_fields: [],
    placeholders: [],
    success_criteria: [],
    test_questions: ["Hello?"],
    findings: [],
  } as unknown as Plan,
  approaches: [
    { label: "Small", description: "one chain" },
    { label: "Large", description: "an agent" },
  ],
  missing_credentials: [],
  assumed: [],
  not_done: [
    {
      id: "p1",
      quote: "a pony",
      source: "requirement",
      state: "not_understood" as const,
      nodes: [],
      values: [],
      reason: "There is none.",
    },
  ],
  details: {
    values: [
      {
        node_id: "chatOpenAI_0",
        node: "Answering model",
        param: "modelName",
        old: "gpt-4o",
        new: "gpt-4.1",
        label: "",
        list_label: "",
        loses_text: false,
        words: {},
      },
    ],
    removed: [{ node_id: "calculator_0", node_name: "calculator", label: "Calculator" }],
    kept: [],
    to_do: [],
    simulated: [],
    addresses: [],
    called: [],
    hosts_in_text: [],
    allows: ["Flowise may call api.example.org."],
    outline: [],
    names: {},
  },
};
const PATCH = { change: null, meanwhile: null, ops: [], findings: [], budget: { tokens: 1000, usd: null } };
const PLAN_OPTIONS = [option("approve", "Approve"), option("request_changes", "Ask for changes"), CANCEL];

it("shows once that something cannot be built, and asks for another requirement", async () => {
  const declined = {
    ...PLAN.contract,
    operation: "create" as const,
    goal: "A time machine",
    declined: "No such node.",
  };
  const options = [option("request_changes", "Ask for something else"), CANCEL];
  const { sent, press } = show(PlanApprovalForm, { ...PLAN, contract: declined, approaches: [] }, options, "declined");
  expect(screen.queryByText("A time machine")).toBeNull();
  expect(screen.getByRole("link", { name: "Build by hand" }).getAttribute("href")).toMatch(/\/new$/);
  await userEvent.type(screen.getByLabelText("What should be built instead?"), "a support bot");
  await press("Ask for something else");
  expect(sent).toEqual([{ action: "request_changes", feedback: "a support bot" }]);
});

it("asks one question instead of showing a plan, and takes the answer", async () => {
  const open = { ...PLAN.contract, goal: "A bot", declined: "Which model?" };
  const options = [option("request_changes", "Answer"), CANCEL];
  const { sent, press } = show(PlanApprovalForm, { ...PLAN, contract: open, approaches: [] }, options, "question");
  await userEvent.type(screen.getByLabelText("Your answer"), "the second");
  await press("Answer");
  expect(sent).toEqual([{ action: "request_changes", feedback: "the second" }]);
  expect(questionTitle("plan_approval", "question")).toBe("One question first");
});

it("shows values beside the old ones, names of removed nodes, what is not done and what is allowed", () => {
  show(PlanApprovalForm, PLAN, PLAN_OPTIONS);
  for (const text of ["Answering model", "gpt-4o", "gpt-4.1", "Calculator", "Flowise may call api.example.org."])
    expect(screen.getAllByText(text, { exact: false }).length).toBeGreaterThan(0);
  const part = screen.getByText("\u201ca pony\u201d").closest("li");
  expect(part?.textContent).toContain("Not understood");
  expect(part?.textContent).toContain("There is none.");
});

it("shows what is to be checked in a plan, and that a text goes", () => {
  const finding = { code: "TEXT_REPLACED", severity: "warning", message: "A text goes.", where: "", hint: "" };
  const contract = { ...PLAN.contract, findings: [finding as unknown as Finding] };
  const values = PLAN.details.values.map((one) => ({ ...one, loses_text: true }));
  show(PlanApprovalForm, { ...PLAN, contract, details: { ...PLAN.details, values } }, PLAN_OPTIONS);
  expect(screen.getByRole("list", { name: "Findings" }).textContent).toContain("A text goes.");
  expect(screen.getByText("The text that is there now goes.")).toBeTruthy();
});

it("folds a long text of a plan to its beginning, and says where the branches of a step lead", async () => {
  const text = Array.from({ length: 9 }, (_, at) => `Rule ${at}.`).join("\n");
  const values = PLAN.details.values.map((one) => ({ ...one, old: null, new: text }));
  const leads_to = [
    { name: "refund", to: "Refunds", known: true },
    { name: "otherwise", to: "", known: true },
  ];
  const line = { node_id: "chatOpenAI_0", title: "Answering model", depth: 0, state: "new" as const, leads_to };
  const outline = [{ ...line, purpose: "" }];
  const { press } = show(PlanApprovalForm, { ...PLAN, details: { ...PLAN.details, values, outline } }, PLAN_OPTIONS);
  const built = screen.getByRole("list", { name: "What is built" });
  expect(built.textContent).toContain("refund → Refunds");
  expect(built.textContent).toContain("otherwise → the flow ends here");
  expect(built.textContent).toContain("Rule 2.");
  expect(built.textContent).not.toContain("Rule 8.");
  await press(`Show all: ${text.length} characters`);
  expect(built.textContent).toContain("Rule 8.");
});

it("shows findings that the flow had before apart from new ones", () => {
  const finding = (origin: "new" | "base") => ({ code: "X", severity: "warning", message: origin, where: "", origin });
  const findings = [finding("new"), finding("base")] as unknown as Finding[];
  show(PatchReviewForm, { ...PATCH, findings }, [CANCEL]);
  expect(screen.getByRole("list", { name: "Findings" }).textContent).not.toContain("base");
  expect(screen.getByText("The flow had these before (1)")).toBeTruthy();
});

it("tells a finding of several nodes once, with their names", () => {
  const of = (node: string) => ({ code: "X", severity: "warning", message: `${node}: Too old.`, params: { node } });
  const findings = ["A", "B", "C", "D"].map((node) => ({ ...of(node), where: "", origin: "new" }));
  show(PatchReviewForm, { ...PATCH, findings: findings as unknown as Finding[] }, [CANCEL]);
  const list = screen.getByRole("list", { name: "Findings" });
  expect(list.children).toHaveLength(1);
  expect(list.textContent).toContain("A, B, C, …: Too old. 4 times");
});

it("picks a flow, or none", async () => {
  const flow = (id: string, name: string) => ({
    id,
    name,
    type: "CHATFLOW",
    nodes: 3,
    updated: new Date().toISOString(),
    deployed: true,
    node_types: ["chatOpenAI"],
    about: "",
  });
  const { sent, press } = show(TargetPicker, { candidates: [flow("f1", "Sales"), flow("f2", "Support")] }, [
    option("select", "Choose"),
    option("create_new", "Create a new chatflow"),
  ]);
  // No flow is chosen beforehand.
  await press("Choose");
  expect(sent).toEqual([]);
  expect(screen.getByText("Choose one of the flows.")).toBeTruthy();
  await userEvent.click(screen.getByRole("radio", { name: /Support/ }));
  await press("Choose");
  await press("Create a new chatflow");
  expect(sent).toEqual([{ action: "select", chatflow_id: "f2" }, { action: "create_new" }]);
});

it("approves a plan with the chosen approach and changed test questions", async () => {
  const { sent, press } = show(PlanApprovalForm, PLAN, PLAN_OPTIONS);
  const titles = screen.getAllByRole("heading").map((one) => one.textContent);
  expect(titles).toEqual([
    "Your request, part by part",
    "What is built",
    "What an approval allows",
    "Steps",
    "Credentials",
  ]);
  expect(screen.getByText(/<b>answers<\/b>/)).toBeTruthy();
  await userEvent.click(screen.getByRole("radio", { name: /Large/ }));
  await press("Approve");
  await press("Add a question");
  await userEvent.type(screen.getByLabelText("Test question 2"), "And then?");
  await press("Approve");
  expect(sent).toEqual([
    { action: "approve", approach: "Large" },
    { action: "approve", approach: "Large", test_questions: ["Hello?", "And then?"] },
  ]);
});

it("never takes feedback for an approval, and never loses it", async () => {
  const { sent, press } = show(PlanApprovalForm, PLAN, PLAN_OPTIONS);
  await press("Ask for changes");
  expect(screen.getByText("Describe what should be different.")).toBeTruthy();
  await userEvent.type(screen.getByLabelText("What should be different?"), "yes but shorter");
  await press("Approve");
  expect(sent).toEqual([]);
  await press("Ask for changes");
  expect(sent).toEqual([{ action: "request_changes", feedback: "yes but shorter" }]);
});

it("asks for confirmation before it ends a session", async () => {
  const { sent, press } = show(PlanApprovalForm, PLAN, PLAN_OPTIONS);
  await press("Cancel");
  expect(document.activeElement).toBe(screen.getByRole("button", { name: "No, go back" }));
  await press("No, go back");
  expect(sent).toEqual([]);
  await press("Cancel");
  await press("End the session");
  expect(sent).toEqual([{ action: "cancel" }]);
});

it("chooses a credential for each type before it sends", async () => {
  const credentials = [
    {
      type: "openAIApi",
      candidates: [
        { id: "c1", name: "Sales" },
        { id: "c2", name: "Support" },
      ],
    },
    { type: "mistralAIApi", candidates: [] },
  ];
  const { sent, press } = show(CredentialCheckForm, { credentials }, [
    option("retry", "Read again"),
    option("choose", "Choose"),
    option("skip", "Go on without"),
  ]);
  expect(screen.getByText("Flowise has no credential of type mistralAIApi.")).toBeTruthy();
  await press("Choose");
  expect(sent).toEqual([]);
  await userEvent.selectOptions(screen.getByLabelText("openAIApi"), "Support");
  await press("Choose");
  await press("Go on without");
  expect(sent).toEqual([{ action: "choose", choose: { openAIApi: "c2" } }, { action: "skip" }]);
});

it("raises a budget to the entered limit", async () => {
  const { sent, press } = show(PatchReviewForm, PATCH, [option("raise_budget", "Raise the budget"), CANCEL]);
  expect(screen.getByText(/1K tokens and \$0.50/)).toBeTruthy();
  expect(screen.getByRole("button", { name: "Raise the budget and continue" })).toHaveProperty("disabled", true);
  await userEvent.type(screen.getByLabelText("New token limit"), "5000");
  await press("Raise the budget and continue");
  expect(sent).toEqual([{ action: "raise_budget", budget: { tokens: 5000 } }]);
});

it("keeps both changes, overwrites after a confirmation, or plans again", async () => {
  const options = [
    option("rebase", "Keep both"),
    option("overwrite", "Overwrite", "It replaces the other one."),
    option("replan", "Plan again"),
    CANCEL,
  ];
  const { sent, press } = show(PatchReviewForm, PATCH, options);
  await press("Keep both");
  await press("Overwrite");
  await press("Overwrite the other change");
  await press("Plan again");
  expect(sent).toEqual([{ action: "rebase" }, { action: "overwrite" }, { action: "replan" }]);
});

it("shows findings with their hints", () => {
  const finding: Partial<Finding> = {
    code: "TOO_MANY_OPS",
    severity: "error",
    message: "61 ops are too many.",
    where: "chatOpenAI_0",
    hint: "Write fewer.",
  };
  show(PatchReviewForm, { ...PATCH, findings: [finding as Finding] }, [option("replan", "Plan again"), CANCEL]);
  expect(screen.getByText("61 ops are too many.")).toBeTruthy();
  expect(screen.getByText("Write fewer.")).toBeTruthy();
  expect(screen.getByText("TOO_MANY_OPS · chatOpenAI_0")).toBeTruthy();
});

const RESULT = {
  chatflow: { id: "f1", name: "Bot", url: "http://flowise/canvas/f1" },
  draft: null,
  write_mode: null,
  verdict: { done: false, reason: "One answer is wrong.", notes: ["too long"] },
  tests: [
    {
      question: "Hi?",
      trial: 1,
      passed: false,
      answer: "",
      category: "TIMEOUT",
      error: "No answer within 60 s.",
      duration_ms: 60_000,
      used_tools: [],
    },
  ],
  baseline: [
    {
      question: "Hi?",
      trial: 1,
      passed: true,
      answer: "Hello",
      category: null,
      error: "",
      duration_ms: 5,
      used_tools: [],
    },
  ],
  regressions: [{ question: "Hi?", worse: true }],
  iterations: [],
  change: null,
  notes: [],
  warnings: [],
  to_do: ["Supply: the price list."],
  placeholders: ["the price list"],
} as unknown as InterruptOf<"result_review">["data"];
const RESULT_OPTIONS = [
  option("accept", "Accept", "Deploy it."),
  option("iterate", "Change it"),
  option("rollback", "Roll back", "Delete it."),
];

it("shows why a test failed, its earlier answer and the placeholders", () => {
  show(ResultReviewForm, RESULT, RESULT_OPTIONS);
  expect(screen.getByText("Timeout")).toBeTruthy();
  expect(screen.getByText("1 question had a better answer before the change:")).toBeTruthy();
  expect(screen.getByText("Supply: the price list.")).toBeTruthy();
});

it("shows a test's answer as Markdown, and its tools and its note on lines of their own", () => {
  const test = { ...RESULT.tests[0], answer: "# Menu\n\n- soup\n- bread", used_tools: ["calculator"] };
  const verdict = { ...RESULT.verdict, notes: ["answered"] } as NonNullable<typeof RESULT.verdict>;
  show(ResultReviewForm, { ...RESULT, verdict, tests: [test] } as typeof RESULT, RESULT_OPTIONS);
  expect(screen.getByRole("heading", { name: "Menu" })).toBeTruthy();
  expect(screen.getByText("soup").tagName).toBe("LI");
  const lines = [screen.getByText("Used: calculator"), screen.getByText("answered")].map((one) => one.closest("p"));
  expect(lines[0]).not.toBe(lines[1]);
});

it("shows what the tests show of the parts and the criteria, and what happened inside", async () => {
  const verdict = {
    done: true,
    headline: "runs",
    notes: [],
    parts: [{ id: "p1", quote: "posts to Slack", state: "missing", reason: "The plan does not cover it." }],
    criteria: [
      {
        id: "c1",
        text: "It remembers.",
        state: "shown",
        judged_by: "model",
        evidence: [{ trial: 1, node_id: null, quote: "You are Eva" }],
        reason: "",
      },
    ],
  };
  const tests = [{ ...RESULT.tests[0], passed: true, category: null, answer: "Eva", trace_sha256: "a".repeat(64) }];
  show(ResultReviewForm, { ...RESULT, verdict, tests } as unknown as typeof RESULT, RESULT_OPTIONS);
  expect(screen.getByText("It answers. All criteria were shown, but not every part of your request.")).toBeTruthy();
  expect(screen.getByText("Missing")).toBeTruthy();
  expect(screen.getByText(/You are Eva/)).toBeTruthy();
  expect(screen.getByText("What happened inside")).toBeTruthy();
  expect(screen.getByText("✓ Passed")).toBeTruthy();
});

it("does not say of an answer that showed nothing that it passed", () => {
  // Nor where a model judged and nothing was shown.
  const criteria = [{ id: "c1", text: "It remembers.", state: "not_shown", judged_by: "model", evidence: [] }];
  const verdict = { done: true, headline: "runs", notes: [], parts: [], criteria };
  const tests = [{ ...RESULT.tests[0], passed: true, category: null, answer: "Eva" }];
  show(ResultReviewForm, { ...RESULT, verdict, tests } as unknown as typeof RESULT, RESULT_OPTIONS);
  expect(screen.getByText("Answered")).toBeTruthy();
  expect(screen.queryByText(/Passed/)).toBeNull();
});

it("accepts an earlier iteration that showed more", async () => {
  const iterations = [
    { iteration: 0, headline: "works", shown: ["It remembers.", "It is short."] },
    { iteration: 1, headline: "runs", shown: ["It is short."] },
  ];
  const { sent, press } = show(ResultReviewForm, { ...RESULT, iterations } as typeof RESULT, RESULT_OPTIONS);
  const choice = screen.getByLabelText<HTMLSelectElement>("Iteration to accept");
  expect(choice.selectedOptions[0]?.textContent).toContain("1 (newest): It answers");
  await press("Accept");
  await userEvent.selectOptions(choice, "0");
  await press("Accept");
  expect(sent).toEqual([
    { action: "accept", deploy: true },
    { action: "accept", deploy: true, iteration: 0 },
  ]);
});

it("says Go live where accepting puts a flow in use, and only there", async () => {
  const german = { code: "option.accept.label", params: {} };
  const accept = (what: string) => ({
    ...option("accept", "Accept", "What it does."),
    texts: { label: german, description: { code: `option.accept_${what}.description`, params: {} } },
  });
  const button = (name: string) => screen.queryByRole("button", { name });
  show(ResultReviewForm, RESULT, [accept("new"), option("iterate", "Change it")]);
  expect(button("Go live")).toBeTruthy();
  await userEvent.click(screen.getByLabelText("Put it live when I accept"));
  expect(button("Accept")).toBeTruthy();
  cleanup();
  show(ResultReviewForm, RESULT, [accept("unchanged"), option("iterate", "Change it")]);
  expect(button("Go live")).toBeNull();
});

it("accepts with or without deploying, iterates with feedback, rolls back after a confirmation", async () => {
  const { sent, press } = show(ResultReviewForm, RESULT, RESULT_OPTIONS);
  expect(screen.getByText("Deploy it.")).toBeTruthy();
  await userEvent.click(screen.getByLabelText("Put it live when I accept"));
  expect(screen.queryByText("Deploy it.")).toBeNull();
  expect(screen.getByText("Keep the chatflow without deploying it.")).toBeTruthy();
  await press("Accept");
  await userEvent.type(screen.getByLabelText("What should be different?"), "shorter");
  await press("Change it");
  await userEvent.clear(screen.getByLabelText("What should be different?"));
  await press("Roll back");
  await press("Roll back now");
  expect(sent).toEqual([
    { action: "accept", deploy: false },
    { action: "iterate", feedback: "shorter" },
    { action: "rollback" },
  ]);
});
