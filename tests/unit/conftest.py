"""What every unit test has: a home of its own, so that nobody's keys, registry or cache are touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Examples are the same in every run: a suite that gates changes must not fail by chance. `--hypothesis-profile=explore`
# looks further. The machine is shared, so no example has a deadline.
settings.register_profile("unit", deadline=None, derandomize=True, database=None, max_examples=100)
settings.register_profile(
    "explore", deadline=None, database=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unit")


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HFREG_CACHE", "HFREG_REGISTRY"):
            patch.setenv(name, str(home / name.lower()))
        patch.delenv("HFREG_SIGNING_KEY", raising=False)
        yield
