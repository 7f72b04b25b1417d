"""Advice on the page says by which rules it is given, and is what the command says by these."""

from __future__ import annotations

import numpy as np

from trimtab.cli.recommend import AdviceOptions
from trimtab.journal import ObjectName
from trimtab.policy import Advice, Inspection
from trimtab.web.advice import advice
from trimtab.web.packing import Column, PageTable


def test_it_names_its_rules() -> None:
    count = 8 * 1440
    steady = {"load": 6.0, "cpu_cores": 1.0, "memory_bytes": 5e8, "ready": 12.0, "replicas": 12.0}
    columns: dict[str, Column] = {name: np.full(count, value, dtype=np.float32) for name, value in steady.items()}
    name = ObjectName("Autoscaler", "shop", "web")._asdict()
    found = advice(
        PageTable({"name": name, "unit": "cores"}, columns | {"at": 60.0 * np.arange(count, dtype=np.float64)})
    )
    assert "trimtab recommend --rules crane" in found["because"][0]


def test_these_are_the_rules_of_the_command() -> None:
    options = AdviceOptions(rules="crane", kind=None, config=(), lam=32.0, startup_s=120.0, timezone="")
    assert options.inspection() == Inspection(advice=Advice.HPA)
