"""Under .ci/run a skipped test is a failure, because CI installs everything that tests need."""

import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile(
    "windlass",
    deadline=None,  # a busy machine is not a slow program
    derandomize="CI" in os.environ,  # CI is repeatable; elsewhere random examples may find more
)
settings.load_profile("windlass")

# Tests that are started in the background, or with nohup, ignore these signals, and every process
# that a test starts would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

STRICT = os.environ.get("WINDLASS_SKIPS_FAIL") == "1"
ALLOWED = tuple(os.environ.get("WINDLASS_SKIPS_ALLOWED", "").split(",")) if STRICT else ()
"""Words in the reason of an allowed skip, for things that CI cannot install."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if STRICT and report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
        if not any(word and word in reason for word in ALLOWED):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} must not skip here: {reason}"
    return report


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
