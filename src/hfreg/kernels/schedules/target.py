"""What schedules know of a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from hfreg.kernels.targets import Target
from hfreg.lang.tensor import Lowering


@dataclass(frozen=True, slots=True)
class ScheduleTarget:
    """A target, as schedules see it."""

    name: str
    architecture: str
    halide_string: str
    vector: int
    """float32 lanes of a vector register."""
    registers: int
    """Vector registers."""
    has_float16: bool
    """Whether instructions convert float16."""

    @classmethod
    def of(cls, target: Target) -> Self:
        assert target.build is not None and target.schedule is not None
        return cls(
            target.name,
            target.architecture,
            f"{target.build.halide}-no_runtime-user_context",
            target.schedule.vector_bytes // 4,
            target.schedule.vector_registers,
            target.schedule.has_float16,
        )

    def lowering(self, *, lanes: int = 32, steps: int = 0, touched: str = "") -> Lowering:
        """How graphs for this target are made."""
        return Lowering(self.vector, lanes, self.has_float16, steps, touched)
