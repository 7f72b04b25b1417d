"""What `python -m tests.virtual.chaos.undone` takes away is still there to be taken."""

from __future__ import annotations

import pytest

from tests.virtual.chaos.fixes import FIXES, Fix
from tests.virtual.chaos.undone import ROOT


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.row)
def test_a_fix_can_be_undone(fix: Fix) -> None:
    for edit in fix.edits:
        assert (ROOT / edit.file).read_text().count(edit.old) == 1, edit
        assert edit.new != edit.old
