"""explain: the four values of a decision -> sentence, conditions, table. The only place that writes prose."""

from trimtab.core.explain.conditions import Condition, action, conditions, error, limited
from trimtab.core.explain.sentence import Row, clock, missing_text, rule_text, sentence, table

__all__ = [
    "Condition",
    "Row",
    "action",
    "clock",
    "conditions",
    "error",
    "limited",
    "missing_text",
    "rule_text",
    "sentence",
    "table",
]
