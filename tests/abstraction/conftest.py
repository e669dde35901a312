"""Fixtures of abstraction builds: hand strengths and features, shared read-only."""

import pytest

from abstraction import deck_models, stages
from abstraction.strength import preflop_strengths, river_strengths


@pytest.fixture(scope="session")
def river():
    """Return all of `river_strengths`, read-only."""
    return river_strengths(workers=2)


@pytest.fixture(scope="session")
def preflop(river):
    """Return all of `preflop_strengths`, read-only."""
    return preflop_strengths(river=river, workers=2)


@pytest.fixture(scope="session")
def shared_descriptions(river):
    """Compute strengths once for all builds, and features once for each kind and number of workers.

    test_strength.py shows that strengths do not depend on the number of workers.
    """
    found, collect = {}, stages.collect

    def once(key, compute):
        if key not in found:
            found[key] = compute()
        return found[key]

    def collect_once(features, workers, parents=None, share=None):
        if parents is not None:
            return collect(features, workers, parents, share)
        key = (features.rows.__qualname__, features.hands.boards, features.hands.most, workers)
        return once(key, lambda: collect(features, workers, None, share))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deck_models, "river_strengths", lambda workers: river)
        for compute in (deck_models.runout_sums, deck_models.preflop_strengths):

            def look(*arguments, compute=compute, workers=1, **named):
                key = (compute, *(a for a in arguments if isinstance(a, int)))  # the other argument is the river table
                return once(key, lambda: compute(*arguments, workers=workers, **named))

            patch.setattr(deck_models, compute.__name__, look)
        patch.setattr(stages, "collect", collect_once)
        yield
