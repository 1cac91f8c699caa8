"""JUnit XML for CI systems: one test case a variant; a regression and a failure are failures."""

from __future__ import annotations

from xml.etree import ElementTree

from bench.compare import RunComparison
from bench.model import Verdict
from bench.reports.rows import rows, rules

FAILING = (Verdict.REGRESSED, Verdict.FAILED)


def comparison_junit(comparison: RunComparison) -> str:
    """One `testsuite` with notes and rules as properties; undecided and incomparable variants are `skipped`."""
    suite = ElementTree.Element(
        "testsuite", name="bench compare", tests=str(len(comparison.arms)),
        failures=str(sum(comparison.count(v) for v in FAILING)),
    )  # fmt: skip
    if notes := [*comparison.notes, *rules(comparison)]:
        properties = ElementTree.SubElement(suite, "properties")
        for text in notes:
            ElementTree.SubElement(properties, "property", name="note", value=_clean(text))
    lines = rows(comparison)
    for arm in comparison.arms:
        benchmark, _, axes = _clean(arm.name).partition("[")
        case = ElementTree.SubElement(suite, "testcase", classname=benchmark, name=f"[{axes}" if axes else "run")
        text = "\n".join(
            " ".join(filter(None, (r.word, r.metric, r.values, r.change, r.behind, r.reason)))
            for r in lines
            if r.variant == arm.name
        )
        if arm.verdict in FAILING:
            ElementTree.SubElement(case, "failure", message=_clean(arm.verdict.value)).text = _clean(text)
        elif arm.verdict in (Verdict.INCONCLUSIVE, Verdict.INCOMPARABLE):
            ElementTree.SubElement(case, "skipped", message=_clean(f"{arm.verdict.value}: {arm.reason}"))
        elif text:
            ElementTree.SubElement(case, "system-out").text = _clean(text)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Characters that XML 1.0 (section 2.2) cannot hold become a question mark."""
    return "".join(c if _allowed(c) else "?" for c in text)


def _allowed(c: str) -> bool:
    return c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000"
