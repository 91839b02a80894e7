"""Measures the prompts of the four phases for the cases of a file, and checks that they name the needed node types.

    python scripts/bench/prompts.py CASES.yaml

Runs without a model: the rules make the plan instead of the model. Tokens are estimated at four characters each.
Providers cache the stable part.
"""

import argparse
import asyncio
from pathlib import Path
from typing import Any

import yaml

from flowise_dev_agent.agent.domains.candidates import candidates
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning import DeterministicReasoner
from flowise_dev_agent.reasoning.contracts import (
    ClassifyRequest,
    JudgeRequest,
    PatchRequest,
    PlanRequest,
    Trial,
)
from flowise_dev_agent.reasoning.prompts import Prompt, classify_prompt, judge_prompt, patch_prompt, plan_prompt

CREDENTIALS = {"openAIApi": 1, "anthropicApi": 1}


def tokens(text: str) -> int:
    """An estimate good enough to compare."""
    return len(text) // 4


async def measure(case: dict[str, Any], nodes: NodeStore) -> tuple[dict[str, Prompt], int, list[str]]:
    """(prompts by phase, number of candidates, expected node types that are not among them) of one CREATE case."""
    rules, wish = DeterministicReasoner(), case["requirement"]
    intent = (await rules.classify(ClassifyRequest(requirement=wish))).value
    shown = candidates(nodes, wish, similar=rules.suggest_node_types(wish, nodes, CREDENTIALS))
    request = PlanRequest(requirement=wish, intent=intent, nodes=nodes, candidates=shown, credential_types=CREDENTIALS)
    plan = (await rules.plan(request)).value
    usual = "An answer of a usual length. " * 8
    trials = tuple(Trial(question=question, answer=usual, passed=True) for question in plan.test_questions)
    prompts = {
        "classify": classify_prompt(ClassifyRequest(requirement=wish)),
        "plan": plan_prompt(request),
        "patch": patch_prompt(PatchRequest(requirement=wish, plan=plan, nodes=nodes)),
        "judge": judge_prompt(JudgeRequest(requirement=wish, plan=plan, trials=trials)),
    }
    names = {schema.name for schema in shown}
    groups: list[list[str]] = case.get("expect", {}).get("nodes", [])
    return prompts, len(shown), ["/".join(group) for group in groups if not names.intersection(group)]


async def main(cases: list[dict[str, Any]]) -> None:
    """Print a line per case and the averages."""
    nodes = NodeStore.from_snapshot()
    totals: list[int] = []
    stable: dict[str, int] = {}
    print(f"{'case':24} {'classify':>8} {'plan':>6} {'patch':>6} {'judge':>6} {'sum':>6}  candidates  missing")
    for case in cases:
        if case["mode"] != "create" or not case.get("expect", {}).get("nodes"):
            continue
        prompts, shown, missing = await measure(case, nodes)
        stable = {phase: tokens(prompt.system) for phase, prompt in prompts.items()}
        own = {phase: tokens(prompt.user) for phase, prompt in prompts.items()}
        totals.append(sum(own.values()))
        counts = f"{own['classify']:8} {own['plan']:6} {own['patch']:6} {own['judge']:6} {totals[-1]:6}"
        print(f"{case['id']:24} {counts}  {shown:10}  {', '.join(missing) or '-'}")
    print(f"outside the stable part: {sum(totals) // len(totals)} tokens on average, {max(totals)} at most")
    print(f"stable part per phase: {stable}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    asyncio.run(main(yaml.safe_load(parser.parse_args().cases.read_text())))
