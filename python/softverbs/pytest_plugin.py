"""The pytest plugin of softverbs.

    @pytest.mark.softverbs(devices=2, script="when ibv_reg_mr, nth 3: error ENOMEM")
    def test_it(softverbs):
        assert softverbs.run("program").status == 1

A test that is marked softverbs_sim runs under `softverbs sim`, once with each seed. The fixture `softverbs` is a Session of the test's own. The report of a failed test has the story of each of its programs, and what one that hangs
waits for.
"""
from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Generator, List, Optional

import pytest

from softverbs import Session, sim
from softverbs.lab import Host, Lab, LabError


def pytest_configure(config: Any) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", "softverbs(devices=1, script='', seed=None): how the fixture `softverbs` begins")
    config.addinivalue_line("markers", "softverbs_sim(seeds=range(20), options=()): run the test under softverbs sim, once with each seed")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Optional[bool]:
    """Runs a test that is marked softverbs_sim in a pytest of its own, simulated, with each seed. The test fails with the first seed that does."""
    marker = pyfuncitem.get_closest_marker("softverbs_sim")
    if marker is None or sim.is_simulated():
        return None
    named = pyfuncitem.config.pluginmanager.has_plugin("softverbs.pytest_plugin") and "softverbs.pytest_plugin" not in os.environ.get("PYTEST_PLUGINS", "")
    node = os.path.join(str(pyfuncitem.config.rootpath), pyfuncitem.nodeid)
    try:
        found = sim.find_failing(sim.pytest_words(node, named), marker.kwargs.get("seeds", range(20)), marker.kwargs.get("options", ()))
    except sim.SimError as error:
        pytest.skip(str(error))
    if found:
        pytest.fail(f"The test fails with seed {found.seed}. Repeat it with:\n{found.command}\n\n{found.output}", pytrace=False)
    return True


@pytest.fixture
def softverbs(request: Any) -> Generator[Session, None, None]:
    """A Session, as the marker `softverbs` asks for it."""
    marker = request.node.get_closest_marker("softverbs")
    with Session(**(marker.kwargs if marker else {})) as session:
        request.node.softverbs_session = session
        yield session


@pytest.fixture
def softverbs_hosts() -> Generator[Callable[..., List[Host]], None, None]:
    """softverbs_hosts(3, "--link", "delay=1ms"): the hosts of a lab, until the test ends. Where there can be none, the test is skipped."""
    with contextlib.ExitStack() as labs:
        def make(hosts: int, *options: str) -> List[Host]:
            try:
                return labs.enter_context(Lab(hosts, *options)).hosts
            except LabError as error:
                pytest.skip(str(error))
        yield make


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, None]:
    """Adds to the report of a test that failed the stories of its programs, and what `softverbs why` says of those that hang."""
    outcome = yield
    report = outcome.get_result()
    session = getattr(item, "softverbs_session", None)
    if session is None or report.when != "call" or not report.failed:
        return
    for program in session.programs:
        name = " ".join(map(str, program.process.args[program.process.args.index("--") + 1:]))
        hang: List[str] = program.hang or program.why()
        report.sections.append((f"softverbs story of {name}", "\n".join(program.story()) or "nothing was reported"))
        if hang:
            report.sections.append((f"softverbs why of {name}", "\n".join(hang)))
