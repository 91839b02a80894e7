// A form for each type of interrupt. Every form offers exactly the actions that the interrupt's `options` name.

import { el, link, markdown } from "/assets/dom.js";

/** The form for an open interrupt; `send(answer)` gets the typed answer and resolves when the service has taken it. */
export function questionForm(interrupt, send) {
  const form = el("form", { noValidate: true });
  const parts = (BUILDERS[interrupt.type] ?? (() => ({ nodes: [], answer: (action) => ({ action }) })))(interrupt.data, interrupt.reason);
  const problem = el("p", { role: "alert", className: "reason", hidden: true });
  const buttons = interrupt.options.map((option) =>
    el("button", {
      type: "submit",
      value: option.value,
      title: option.description ?? "",
      className: option.value === interrupt.options[0].value ? "" : "quiet",
    }, option.label));
  form.append(
    el("h3", { tabIndex: -1 }, TITLES[interrupt.type] ?? interrupt.type),
    el("p", {}, interrupt.message),
    ...parts.nodes,
    problem,
    el("div", {}, buttons),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const action = event.submitter?.value ?? interrupt.options[0].value;
    for (const button of buttons) button.disabled = true;
    problem.hidden = true;
    try {
      await send(parts.answer(action));
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      for (const button of buttons) button.disabled = false;
    }
  });
  return form;
}

/** The test questions with their answers, as a list of nodes. */
function testResults(tests) {
  return tests.map((test) =>
    el("div", { className: `test ${test.passed ? "passed" : "failed"}` },
      el("strong", {}, `${test.passed ? "Passed" : "Failed"}: ${test.question}`),
      el("p", { className: "answer" }, test.answer || test.error || "No answer."),
      !test.passed && el("p", { className: "reason" }, [test.category, test.error].filter(Boolean).join(": "))));
}

const TITLES = {
  clarification: "A question first",
  select_target: "Which chatflow?",
  plan_approval: "The plan",
  credential_check: "Credentials",
  patch_review: "Before the change is written",
  result_review: "The result",
};

const BUILDERS = {
  clarification(data) {
    const fields = data.questions.map((question, index) => field(`answer-${index}`, question, 2));
    return {
      nodes: fields.map((item) => item.node),
      answer: (action) => (action === "answer" ? { action, answers: fields.map((item) => item.value()) } : { action }),
    };
  },

  select_target(data) {
    const choice = choices("chatflow", "Chatflows that fit", data.candidates.map((item) => [item.id, item.name]));
    return {
      nodes: [choice.node],
      answer: (action) => (action === "select" ? { action, chatflow_id: choice.value() } : { action }),
    };
  },

  plan_approval(data) {
    const approach = choices("approach", "Approach", data.approaches.map((item) => [item.label, `${item.label}: ${item.description}`]));
    const feedback = field("feedback", "What should be different?", 3);
    return {
      nodes: [
        el("div", { className: "plan" }, markdown(data.plan)),
        data.missing_credentials.length > 0 && el("p", { className: "reason" },
          `This Flowise has no single credential of type ${data.missing_credentials.join(", ")}; you will be asked.`),
        approach.node,
        feedback.node,
      ].filter(Boolean),
      answer(action) {
        if (action === "request_changes") return { action, feedback: needed(feedback) };
        const picked = approach.value();
        return action === "approve" && picked ? { action, approach: picked } : { action };
      },
    };
  },

  credential_check(data) {
    const several = data.credentials.filter((item) => item.candidates.length > 0);
    const pickers = several.map((item, index) => {
      const id = `credential-${index}`;
      const select = el("select", { id }, item.candidates.map((one) => el("option", { value: one.id }, one.name)));
      return { type: item.type, select, node: el("div", {}, el("label", { htmlFor: id }, item.type), select) };
    });
    return {
      nodes: pickers.map((picker) => picker.node),
      answer: (action) => (action === "choose"
        ? { action, choose: Object.fromEntries(pickers.map((picker) => [picker.type, picker.select.value])) }
        : { action }),
    };
  },

  patch_review(data, reason) {
    const feedback = field("feedback", "Remarks for a new plan", 3);
    const tokens = field("tokens", "New ceiling in tokens", 0, "number");
    const usd = field("usd", "New ceiling in USD", 0, "number");
    const findings = data.findings.map((item) =>
      el("li", {}, `${item.code} at ${item.where || "the flow"}: ${item.message} ${item.hint ?? ""}`));
    return {
      nodes: [
        data.change?.text && el("p", {}, data.change.text),
        findings.length > 0 && el("ul", {}, findings),
        data.ops.length > 0 && el("details", {}, el("summary", {}, `${data.ops.length} operations`),
          el("pre", {}, JSON.stringify(data.ops, null, 2))),
        feedback.node,
        reason === "budget" && tokens.node,
        reason === "budget" && usd.node,
      ].filter(Boolean),
      answer(action) {
        if (action === "replan") return feedback.value() ? { action, feedback: feedback.value() } : { action };
        if (action !== "raise_budget") return { action };
        const budget = Object.fromEntries([["tokens", tokens], ["usd", usd]]
          .map(([name, input]) => [name, Number(input.value())]).filter(([, amount]) => amount > 0));
        return { action, budget };
      },
    };
  },

  result_review(data) {
    const feedback = field("feedback", "What should be different?", 3);
    const warnings = [...data.warnings.map((item) => item.message), ...data.placeholders.map((item) => `To fill in: ${item}`)];
    return {
      nodes: [
        el("p", {}, "Chatflow: ", link(data.chatflow.url, data.chatflow.name), ` (${data.chatflow.id})`),
        ...testResults(data.tests),
        warnings.length > 0 && el("ul", { className: "reason" }, warnings.map((text) => el("li", {}, text))),
        feedback.node,
      ].filter(Boolean),
      answer: (action) => (action === "iterate" ? { action, feedback: needed(feedback) } : { action }),
    };
  },
};

function field(id, label, rows, type = "text") {
  const input = rows ? el("textarea", { id, rows }) : el("input", { id, type, min: 0, step: "any" });
  return { node: el("div", {}, el("label", { htmlFor: id }, label), input), value: () => input.value.trim() };
}

/** The field's text; an empty one is asked for before anything is sent. */
function needed(input) {
  if (!input.value()) {
    input.node.querySelector("textarea").focus();
    throw new Error("Please say what should be different.");
  }
  return input.value();
}

/** Radio buttons for [value, text] pairs; the first is chosen, no pairs give no value. */
function choices(name, legend, pairs) {
  const inputs = pairs.map(([value], index) => el("input", { type: "radio", name, value, checked: index === 0 }));
  const node = el("fieldset", { hidden: pairs.length === 0 }, el("legend", {}, legend),
    pairs.map(([, text], index) => el("label", {}, inputs[index], ` ${text}`)));
  return { node, value: () => inputs.find((input) => input.checked)?.value };
}
