"""The examples in docstrings of the estimators give what they say."""

import doctest
import pkgutil
from importlib import import_module

import pytest
from ttf import stats

MODULES = sorted(module.name for module in pkgutil.walk_packages(stats.__path__, "ttf.stats.") if not module.ispkg)


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    assert doctest.testmod(import_module(module)).failed == 0


def test_each_folder_of_estimators_has_examples():
    with_examples = {
        name.rpartition(".")[0]
        for name in MODULES
        if any(test.examples for test in doctest.DocTestFinder().find(import_module(name)))
    }
    assert with_examples == {name.rpartition(".")[0] for name in MODULES}
