// The page: a list of sessions, a form to start one, and one session at a time, rebuilt from GET and kept live by SSE.

import { Problem, call, follow } from "/assets/api.js";
import { $, el, link } from "/assets/dom.js";
import { questionForm } from "/assets/questions.js";

const PHASES = ["intent", "target", "baseline", "plan", "patch", "check", "apply", "test", "review"];
const STATUS = {
  in_progress: "Working",
  pending_interrupt: "Waiting for you",
  completed: "Completed",
  error: "Failed",
  cancelled: "Cancelled",
};
/** Events after which the session's state has to be read again. */
const SETTLES = new Set(["interrupt", "done", "error"]);
const TOKENS_SHOWN = 600;

let shown = null; // { id, interrupt, abort } of the session on screen
let nextCursor = null;

window.addEventListener("hashchange", route);
$("start").addEventListener("submit", start);
$("cancel").addEventListener("click", () => guarded(async () => showState(await call(`/sessions/${shown.id}/cancel`, { method: "POST" }))));
$("retry").addEventListener("click", () => guarded(async () => showState(await call(`/sessions/${shown.id}/retry?wait=0`, { method: "POST" }))));
$("more").addEventListener("click", () => guarded(() => listSessions(nextCursor)));
guarded(health);
guarded(listSessions);
route();

function route() {
  shown?.abort.abort();
  shown = null;
  const id = location.hash.match(/^#\/s\/([0-9a-f-]{36})$/)?.[1];
  $("problem").hidden = true;
  $("start").hidden = Boolean(id);
  $("session").hidden = !id;
  markCurrent();
  if (id) guarded(() => open(id));
}

async function start(event) {
  event.preventDefault();
  const button = event.submitter ?? event.target.querySelector("button");
  button.disabled = true;
  await guarded(async () => {
    const view = await call("/sessions?wait=0", {
      method: "POST",
      headers: { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) },
      body: {
        requirement: $("requirement").value,
        review_patch: $("review-patch").checked,
        ...($("skip-clarification").checked ? { skip_clarification: true } : {}),
      },
    });
    $("start").reset();
    location.hash = `#/s/${view.thread_id}`;
    await listSessions();
  });
  button.disabled = false;
}

async function open(id) {
  const abort = new AbortController();
  const mine = { id, interrupt: null, abort };
  shown = mine;
  for (const part of ["name", "asked", "phases", "question", "result", "events"]) $(part).replaceChildren();
  $("tokens").hidden = true;
  showState(await call(`/sessions/${id}`));
  const seen = new Map();
  await follow(id, 0, (event) => {
    if (shown !== mine) return;
    showEvent(event, seen);
    if (SETTLES.has(event.type)) guarded(refresh);
  }, abort.signal);
}

/** Read the session on screen again. Replayed events may ask for it often: one call at a time, and one more after it. */
async function refresh() {
  const mine = shown;
  if (!mine) return;
  if (mine.reading) {
    mine.again = true;
    return;
  }
  mine.reading = true;
  try {
    do {
      mine.again = false;
      const view = await call(`/sessions/${mine.id}`);
      if (shown === mine) showState(view);
    } while (mine.again);
  } finally {
    mine.reading = false;
  }
  await listSessions();
}

function showState(view) {
  $("name").textContent = view.session_name || "New session";
  $("asked").textContent = view.requirement ?? "";
  $("status").textContent = [STATUS[view.status] ?? view.status, view.outcome?.replace("_", " ")].filter(Boolean).join(": ");
  $("cancel").hidden = !["in_progress", "pending_interrupt"].includes(view.status);
  $("retry").hidden = view.status !== "error";
  if (view.status !== "in_progress") $("tokens").hidden = true;
  showQuestion(view.interrupt ?? null);
  showResult(view);
}

function showQuestion(interrupt) {
  if (shown.interrupt === (interrupt?.id ?? null)) return; // keep what is being typed
  shown.interrupt = interrupt?.id ?? null;
  const id = shown.id;
  const form = interrupt && questionForm(interrupt, async (answer) => {
    try {
      const body = { interrupt_id: interrupt.id, answer };
      showState(await call(`/sessions/${id}/resume?wait=0`, { method: "POST", body }));
    } catch (error) {
      // Answered elsewhere meanwhile: show what the session asks now instead.
      if (error instanceof Problem && error.status === 409) await refresh();
      throw error;
    }
  });
  $("question").replaceChildren(...(form ? [form] : []));
  form?.querySelector("h3").focus({ preventScroll: true });
}

function showResult(view) {
  const totals = view.totals ?? {};
  const facts = [
    ["Chatflow", view.chatflow_id && link(view.chatflow_url, view.chatflow_id)],
    ["Flowise instance", view.instance],
    ["Model calls", totals.model_calls],
    ["Tokens", (totals.input_tokens ?? 0) + (totals.output_tokens ?? 0) || null],
    ["Cost (USD)", totals.usd || null],
    ["Degraded", (view.degraded ?? []).map((one) => `${one.phase}: ${one.fallback_reason}`).join("; ")],
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  $("result").replaceChildren(
    ...(view.error ? [el("p", { className: "reason" }, [view.error.detail, view.error.hint].filter(Boolean).join(" "))] : []),
    el("dl", {}, facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value instanceof Node ? value : String(value))])),
  );
}

function showEvent(event, seen) {
  if (event.type === "token") {
    const text = $("tokens").textContent + (event.data?.text ?? "");
    $("tokens").textContent = text.slice(-TOKENS_SHOWN);
    $("tokens").hidden = false;
    return;
  }
  if (event.type === "node_start") $("tokens").textContent = "";
  if (event.phase) showPhase(event, seen);
  const time = new Date(event.ts).toLocaleTimeString();
  const took = event.duration_ms ? ` (${event.duration_ms} ms)` : "";
  $("events").append(el("li", {}, `${time} ${[event.node, event.type].filter(Boolean).join(" ")}: ${event.summary ?? ""}${took}`));
}

function showPhase(event, seen) {
  const state = { node_start: "active", node_end: "done", node_error: "failed", interrupt: "active" }[event.type];
  if (!state) return;
  seen.set(event.phase, state);
  $("phases").replaceChildren(...PHASES.filter((phase) => seen.has(phase)).map((phase) =>
    el("li", { className: seen.get(phase), "aria-current": seen.get(phase) === "active" ? "step" : "false" }, phase)));
}

async function listSessions(cursor = null) {
  const page = await call(`/sessions?limit=20${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
  const items = page.sessions.map((one) =>
    el("li", {}, el("a", { href: `#/s/${one.thread_id}` }, one.session_name || "New session",
      el("small", {}, `${STATUS[one.status] ?? one.status} · ${new Date(one.created_at).toLocaleString()}`))));
  if (cursor) $("sessions").append(...items);
  else $("sessions").replaceChildren(...items);
  nextCursor = page.next_cursor;
  $("more").hidden = !nextCursor;
  markCurrent();
}

function markCurrent() {
  for (const anchor of $("sessions").querySelectorAll("a")) {
    if (anchor.hash === location.hash) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

async function health() {
  const report = await call("/health").catch((error) => {
    if (error.status === 503) return null;
    throw error;
  });
  if (!report) {
    $("health").textContent = "The database does not answer.";
    return;
  }
  const down = Object.entries(report.flowise ?? {}).filter(([, one]) => one.state !== "ok").map(([id]) => id);
  $("health").textContent = [
    `Reasoning: ${report.reasoning.engine} (${report.reasoning.model})`,
    report.model_stand_in && "Flowise's models are a local stand-in",
    down.length > 0 && `Flowise not reachable: ${down.join(", ")}`,
  ].filter(Boolean).join(" · ");
}

/** Run `work`; what goes wrong is shown above the content. */
async function guarded(work) {
  try {
    await work();
  } catch (error) {
    if (error.name === "AbortError") return;
    $("problem").textContent = error.message;
    $("problem").hidden = false;
  }
}
