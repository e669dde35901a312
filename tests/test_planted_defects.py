"""Each defect of `planted_defects` fails the test that it names, which passes on the original code.

Shows:

* The tests detect defects planted in file storage and in estimators (planted: test_a_planted_defect_is_caught)
"""

import re

import pytest
from mutants import edited, fails_with, source_file
from places import ROOT
from planted_defects import DEFECTS


def changed(defect):
    """Return the source of a module with the defect; `ValueError` unless its text occurs exactly once."""
    source = source_file(defect.module).read_text(encoding="utf-8")
    return edited(defect.module, source, [(defect.old, defect.new)])


def test_every_defect_applies_to_the_present_code_and_names_an_existing_test():
    for defect in DEFECTS:
        changed(defect)
        file, _, name = defect.test.partition("[")[0].partition("::")
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert re.search(rf"^(def )?{name}\b", text, re.MULTILINE), defect.test


@pytest.mark.slow
def test_the_named_tests_pass_on_the_present_code():
    assert not fails_with("storage.durable", [], sorted({defect.test for defect in DEFECTS}))


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=[f"{defect.module}: {defect.what}" for defect in DEFECTS])
def test_a_planted_defect_is_caught(defect):
    compile(changed(defect), defect.module, "exec")  # a module that is no Python fails any test
    assert fails_with(defect.module, [(defect.old, defect.new)], [defect.test])
