"""Coverage: how much of a model a target serves with verified kernels, and why not the rest.

    C = (N_support + N_custom) / N_total

over operator types and over nodes. N_support counts operators of ONNX's own domain, N_custom those of other domains.
A type counts where every node of it is served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hfreg.matrix.matrix import Decision, Matrix, Rejection
from hfreg.matrix.model import ModelNode


@dataclass(frozen=True, slots=True)
class NodeDecision:
    """A node and what the matrix says about it."""

    node: ModelNode
    decision: Decision

    @property
    def type_name(self) -> str:
        request = self.node.request
        return f"{request.domain}::{request.operator}" if request.domain else request.operator


@dataclass(frozen=True, slots=True)
class Ratio:
    """One coverage figure."""

    support: int
    custom: int
    total: int

    @property
    def value(self) -> float:
        return (self.support + self.custom) / self.total if self.total else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "nSupport": self.support,
            "nCustom": self.custom,
            "nTotal": self.total,
            "coverage": round(self.value, 6),
        }


@dataclass(frozen=True, slots=True)
class Gap:
    """Nodes of one type that are not served for one reason."""

    type_name: str
    code: str
    detail: str
    nodes: int
    example: str
    """The path of one of them."""


@dataclass(frozen=True)
class Coverage:
    """The coverage of a model on a target."""

    model: str
    target: str
    decisions: tuple[NodeDecision, ...]

    @property
    def nodes(self) -> Ratio:
        return _ratio(self.decisions)

    @property
    def types(self) -> Ratio:
        by_type: dict[str, list[NodeDecision]] = {}
        for entry in self.decisions:
            by_type.setdefault(entry.type_name, []).append(entry)
        served = [entries[0] for entries in by_type.values() if all(e.decision.cell for e in entries)]
        return Ratio(
            support=sum(not entry.node.request.domain for entry in served),
            custom=sum(bool(entry.node.request.domain) for entry in served),
            total=len(by_type),
        )

    @property
    def gaps(self) -> list[Gap]:
        """What is missing, the most frequent first."""
        found: dict[tuple[str, str, str], list[NodeDecision]] = {}
        for entry in self.decisions:
            reason = entry.decision.reason
            if isinstance(reason, Rejection):
                found.setdefault((entry.type_name, reason.code, reason.detail), []).append(entry)
        gaps = [
            Gap(name, code, detail, len(entries), entries[0].node.path)
            for (name, code, detail), entries in found.items()
        ]
        return sorted(gaps, key=lambda gap: (-gap.nodes, gap.type_name, gap.detail))

    @property
    def served(self) -> dict[str, int]:
        """How many nodes each operator version serves."""
        cells = (entry.decision.cell for entry in self.decisions)
        return dict(sorted(Counter(f"{cell.operator}@{cell.version}" for cell in cells if cell).items()))

    def as_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "target": self.target,
            "operatorTypes": self.types.as_json(),
            "nodes": self.nodes.as_json(),
            "served": self.served,
            "gaps": [
                {"operator": g.type_name, "code": g.code, "detail": g.detail, "nodes": g.nodes, "example": g.example}
                for g in self.gaps
            ],
            "decisions": [
                {
                    "node": entry.node.path,
                    "operator": entry.type_name,
                    "sinceVersion": entry.node.request.since_version,
                    "kernel": entry.decision.cell.serving.name
                    if entry.decision.cell and entry.decision.cell.serving
                    else None,
                    "rejected": [
                        {"candidate": r.candidate, "code": r.code, "detail": r.detail} for r in entry.decision.rejected
                    ],
                }
                for entry in self.decisions
            ],
        }


def _ratio(decisions: Iterable[NodeDecision]) -> Ratio:
    entries = list(decisions)
    served = [entry for entry in entries if entry.decision.cell]
    custom = sum(bool(entry.node.request.domain) for entry in served)
    return Ratio(len(served) - custom, custom, len(entries))


def cover(matrix: Matrix, nodes: Iterable[ModelNode], *, model: str, target: str) -> Coverage:
    """Ask the matrix about every node of a model.

    Raises:
        UsageError: the target is unknown.
    """
    decisions = tuple(NodeDecision(node, matrix.resolve(node.request, target)) for node in nodes)
    return Coverage(model, target, decisions)
