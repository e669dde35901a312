"""What the tests of builds share: strengths and descriptions of hands, which builds only read."""

import pytest

from abstraction import deck_models, stages, street_features
from abstraction.strength import preflop_strengths, river_strengths


@pytest.fixture(scope="session")
def river():
    """All of `river_strengths`, which nobody changes."""
    return river_strengths(workers=2)


@pytest.fixture(scope="session")
def preflop(river):
    """All of `preflop_strengths`, which nobody changes."""
    return preflop_strengths(river=river, workers=2)


@pytest.fixture(scope="session")
def shared_descriptions(river):
    """Strengths once, and descriptions once for each kind of features and number of workers, for all builds.

    That strengths do not depend on the number of workers is shown by test_strength.py.
    """
    found = {}
    collect = stages.collect

    def once(described, workers, parents=None, share=None):
        if parents is not None:
            return collect(described, workers, parents, share)
        key = (type(described.hands), described.hands.most, described.dimensions, workers, described.hands.boards)
        if key not in found:
            found[key] = collect(described, workers, None, share)
        return found[key]

    def kept(compute):
        """A function of strengths whose results are kept, whatever the number of workers."""

        def look(*arguments, workers=1, **named):
            key = (compute, *(a for a in arguments if isinstance(a, int)))  # the rest is the one table of rivers
            if key not in found:
                found[key] = compute(*arguments, workers=workers, **named)
            return found[key]

        return look

    sums, preflop = kept(street_features.runout_sums), kept(street_features.preflop_strengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(street_features, "river_strengths", lambda workers: river)
        for module in (street_features, deck_models):
            patch.setattr(module, "runout_sums", sums)
            patch.setattr(module, "preflop_strengths", preflop)
        patch.setattr(stages, "collect", once)
        yield
