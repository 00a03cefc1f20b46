"""The pytest plugin: the assertions of `tilewise.testing` as fixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewise import testing


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--update-plans``."""
    parser.addoption(
        "--update-plans", action="store_true", help="tilewise: write the plans that assert_plan compares with"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hands it on."""
    testing.updates_plans = bool(config.getoption("--update-plans"))


@pytest.fixture(name="assert_plan")
def plan() -> Callable[..., None]:
    """`tilewise.testing.assert_plan`."""
    return testing.assert_plan


@pytest.fixture(name="assert_padding_below")
def padding_below() -> Callable[..., None]:
    """`tilewise.testing.assert_padding_below`."""
    return testing.assert_padding_below


@pytest.fixture(name="assert_peak_below")
def peak_below() -> Callable[..., None]:
    """`tilewise.testing.assert_peak_below`."""
    return testing.assert_peak_below


@pytest.fixture(name="assert_no_copies")
def no_copies() -> Callable[..., None]:
    """`tilewise.testing.assert_no_copies`."""
    return testing.assert_no_copies


@pytest.fixture(name="assert_bitcast")
def bitcast() -> Callable[..., None]:
    """`tilewise.testing.assert_bitcast`."""
    return testing.assert_bitcast
