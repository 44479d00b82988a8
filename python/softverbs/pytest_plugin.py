"""The pytest plugin of softverbs.

    @pytest.mark.softverbs(devices=2, script="when ibv_reg_mr, nth 3: error ENOMEM")
    def test_it(softverbs):
        assert softverbs.run("program").status == 1

The fixture `softverbs` is a Session of the test's own. The report of a failed test has the story of each of its programs.
"""
from __future__ import annotations

from typing import Any, Generator, List

import pytest

from softverbs import Session


def pytest_configure(config: Any) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", "softverbs(devices=1, script='', seed=None): how the fixture `softverbs` begins")


@pytest.fixture
def softverbs(request: Any) -> Generator[Session, None, None]:
    """A Session, as the marker `softverbs` asks for it."""
    marker = request.node.get_closest_marker("softverbs")
    with Session(**(marker.kwargs if marker else {})) as session:
        request.node.softverbs_session = session
        yield session


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, None]:
    """Adds the stories to the report of a test that failed."""
    outcome = yield
    report = outcome.get_result()
    session = getattr(item, "softverbs_session", None)
    if session is None or report.when != "call" or not report.failed:
        return
    for program in session.programs:
        lines: List[str] = program.story()
        title = f"softverbs story of {' '.join(map(str, program.process.args[program.process.args.index('--') + 1:]))}"
        report.sections.append((title, "\n".join(lines) or "nothing was reported"))
