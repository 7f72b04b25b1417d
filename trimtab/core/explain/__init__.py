"""explain: the four values of a decision -> sentence, conditions, table. The only place that writes prose."""

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
