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


def _fixture(name: str) -> object:
    def fixture() -> Callable[..., None]:
        found: Callable[..., None] = getattr(testing, name)
        return found

    fixture.__doc__ = f"`tilewise.testing.{name}`."
    return pytest.fixture(name=name)(fixture)


for _name in testing.__all__:
    globals()[f"_{_name}"] = _fixture(_name)
