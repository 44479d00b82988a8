"""A plugin of pytest (-p first_of_each) for fabtests: of each test function the first case over each fabric, and no case with memory of a GPU."""
import re

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    first = {}
    for item in items:
        if not re.search("cuda|neuron|rocr", item.name):
            first.setdefault((item.function.__module__, item.function.__name__, "efa-direct" in item.name), item)
    items[:] = first.values()
