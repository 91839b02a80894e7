"""Cycles among connections."""

from collections.abc import Mapping, Sequence


def cycles(successors: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Strongly connected groups of more than one node, and nodes that feed themselves (Tarjan, without recursion)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    groups: list[list[str]] = []
    for root in successors:
        if root in order:
            continue
        work = [(root, iter(successors[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node_id, targets = work[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(successors.get(target, ()))))
                    break
                if target in on_stack:
                    low[node_id] = min(low[node_id], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node_id])
                if low[node_id] == order[node_id]:
                    cut = stack.index(node_id)
                    group, stack[cut:] = stack[cut:], []
                    on_stack.difference_update(group)
                    if len(group) > 1 or node_id in successors.get(node_id, ()):
                        groups.append(group)
    return groups
