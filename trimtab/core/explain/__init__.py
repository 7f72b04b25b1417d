"""explain: a decision's four values -> sentence, conditions, table: all that people read about a decision."""

from trimtab.core.explain.conditions import DecisionCondition, conditions, limited
from trimtab.core.explain.sentence import ExplanationRow, clock, missing_text, rule_text, sentence, table

__all__ = [
    "DecisionCondition",
    "ExplanationRow",
    "clock",
    "conditions",
    "limited",
    "missing_text",
    "rule_text",
    "sentence",
    "table",
]
