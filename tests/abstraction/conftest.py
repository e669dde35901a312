"""What the tests of builds share: strengths and descriptions of hands, which builds only read."""

from functools import cache

import pytest

from abstraction import features, stages


@pytest.fixture(scope="session")
def shared_descriptions():
    """One pass over the rivers, and one for each kind of features and number of workers, for all builds."""
    found = {}
    collect = stages.collect

    def once(described, workers, parents=None, share=None):
        if parents is not None:
            return collect(described, workers, parents, share)
        key = (described.cards, described.dimensions, workers, features.BOARD_COUNTS[described.cards])
        if key not in found:
            found[key] = collect(described, workers, None, share)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "river_strengths", cache(features.river_strengths))
        patch.setattr(stages, "collect", once)
        yield
