"""The pytest plugin: the assertions of `tilewise.testing` as fixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewise import testing


@pytest.fixture(name="assert_padding_below")
def padding_below() -> Callable[..., None]:
    """`tilewise.testing.assert_padding_below`."""
    return testing.assert_padding_below


@pytest.fixture(name="assert_peak_below")
def peak_below() -> Callable[..., None]:
    """`tilewise.testing.assert_peak_below`."""
    return testing.assert_peak_below
