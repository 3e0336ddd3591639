"""From the results of cases to the verdict of a kernel."""

from typing import get_args

import pytest

from hfreg.evaluation.cases import Case
from hfreg.evaluation.results import MAX_REPORTED, CaseResult, summarize
from hfreg.evaluation.verdicts import SEVERITY, Verdict


def result(verdict: Verdict, data_set: str = "D1", name: str = "a") -> CaseResult:
    return CaseResult(Case(data_set, name, (), {}), verdict, f"it is {verdict}")


def test_every_verdict_has_its_place_in_the_order() -> None:
    assert sorted(SEVERITY) == sorted(get_args(Verdict))


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["passed", "passed"], "passed"),
        (["passed", "wrong_result"], "wrong_result"),
        (["wrong_result", "crashed", "passed"], "crashed"),
        (["wrong_result", "out_of_bounds_write", "unwritten_output"], "out_of_bounds_write"),
        (["not_repeatable", "wrong_result"], "wrong_result"),
        (["crashed", "not_reached"], "not_reached"),
    ],
)
def test_the_gravest_verdict_of_a_case_is_the_kernels(verdicts: list[Verdict], expected: Verdict) -> None:
    evaluation = summarize([result(verdict) for verdict in verdicts], "nonce", "seed")
    assert evaluation.verdict == expected


def test_a_kernel_that_was_tried_on_nothing_has_not_passed() -> None:
    evaluation = summarize([], "nonce", "seed")
    assert evaluation.verdict == "not_reached"


def test_failures_are_counted_by_data_set_and_the_first_few_are_told() -> None:
    results = [result("wrong_result", "D5", f"case-{number}") for number in range(9)]
    evaluation = summarize([*results, result("passed", "D0")], "nonce", "seed")
    golden, shapes = evaluation.data_sets
    assert (golden.data_set, golden.cases, golden.failed) == ("D0", 1, 0)
    assert (shapes.data_set, shapes.cases, shapes.failed) == ("D5", 9, 9)
    assert [failure.case for failure in shapes.failures] == [f"D5/case-{number}" for number in range(MAX_REPORTED)]
