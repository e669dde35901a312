"""What functions on cards, ranges, strengths and points refuse, and in which words."""

import numpy as np
from refusals import refusals

from abstraction import cards
from abstraction.boards import canonical_boards, locate_board
from abstraction.cards import parse_cards
from abstraction.clustering.kmeans import kmeans, start, start_from
from abstraction.clustering.points import clustering_problem
from abstraction.clustering.quality import variance_explained
from abstraction.hand_evaluator import board_strengths, category, poker_family_strength, strength
from abstraction.histograms import equity_histograms, preflop_histograms
from abstraction.ochs import ochs_features, opponent_clusters
from abstraction.range_notation import parse_range
from abstraction.strength import hand_strength, river_strengths, runout_sums
from abstraction.suit_isomorphism import indexer

test_cards = refusals(
    ("^'Qs7' is not a list of cards: it has 3 characters", parse_cards, "Qs7"),
    ("^'1h' in 'Qs1h' is not a card: a card is a rank of 23456789TJQKA and a suit of cdhs", parse_cards, "Qs1h"),
    ("^'Ax' in 'QsAx' is not a card", parse_cards, "QsAx"),
    ("^'Th4' is not a list of cards: it has 3 characters", parse_cards, "10h4"),
    ("^'1h' in '1h4d' is not a card", parse_cards, "1h4d"),
    ("^'qx' in 'qx' is not a card", parse_cards, "qx"),
    ("^'QsQhQs' holds the card Qs twice", parse_cards, "QsQhQs"),
    *(("is not a card", cards.parse_card, text) for text in ("", "A", "Asd", "sA", "As ")),
    *((r"two different cards of 0\.\.51", cards.combo_index, a, b) for a, b in ((3, 3), (-1, 4), (0, 52))),
    *(("numbered 0 to 1325", cards.combo_cards, index) for index in (-1, 1326)),
    *((r"numbered 0 \(2c\) to 51 \(As\)", cards.card_text, card) for card in (-1, 52)),
    ("hole_cards is 3", cards.hand_cards, 6, 3),
    ("a deck of 1 cards", cards.hand_cards, 1, 2),
    ("0 cards", cards.hand_cards, 0, 1),
    ("2 cards", locate_board, [0, 1]),
    ("6 cards", locate_board, range(6)),
    ("does not exist", locate_board, [0, 1, 52]),
    ("does not exist", locate_board, [-1, 1, 2]),
    ("holds a card twice", locate_board, parse_cards("Qs7h2d") + parse_cards("Qs")),
    ("boards of 2 cards", canonical_boards, 2),
)

test_hands = refusals(
    (r"shape \(1, 4\)", strength, [0, 1, 2, 3]),
    (r"shape \(1, 8\)", strength, list(range(8))),
    ("dtype float64", strength, [0.0, 1.0, 2.0, 3.0, 4.0]),
    ("range from 0 to 52", strength, [0, 1, 2, 3, 52]),
    ("range from -1 to 3", strength, [0, 1, 2, 3, -1]),
    (r"row 0, \[5, 1, 2, 3, 5, 7\], holds a card twice", strength, [5, 1, 2, 3, 5, 7]),
    *(
        ("three to five distinct cards", board_strengths, board)
        for board in ([0, 1], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 3], [0, 1, 1], [0, 1, 2, 3, 52])
    ),
    *(("run from 1 to 7462", category, value) for value in (0, 7463, -1)),
    *(
        ("is not made of 1 to 7 distinct cards", poker_family_strength, *hand)
        for hand in (((0,), (0,), 3, 2), ((6,), (), 3, 2), ((), (), 3, 2), (range(5), range(5, 8), 13, 4))
    ),
    ("at most 13 and 4 are allowed", poker_family_strength, (0, 1), (2, 3, 4), 14, 4),
    ("has 1 cards", hand_strength, "As", "Qs7h2d"),
    ("has 3 cards", hand_strength, "AsKdQd", ""),
    ("twice", hand_strength, "AsAs", "Qs7h2d"),
    ("2 cards", hand_strength, "AsKd", "Qs7h"),
    ("the card As is in the hand AsKd and on the board", hand_strength, "AsKd", "Qs7hAs"),
    ("twice", hand_strength, "AsKd", "Qs7h2dQs"),
    ("is not a card", hand_strength, "AsKx", ""),
)

test_indices = refusals(
    (r"row 0, \[0, 0, 1, 2, 3\], holds a card twice", indexer((2, 3)).index, [0, 0, 1, 2, 3]),
    ("holds a card twice", indexer((2, 3)).index, [9, 4, 1, 2, 4]),
    (r"shape \(1, 4\).*take rows of 5 card numbers", indexer((2, 3)).index, [0, 1, 2, 3]),
    (r"rounds of \[2, 3\] take rows of 5", indexer((2, 3)).index, [0, 1, 2, 3, 4, 5]),
    *(("numbered 0", indexer((2, 3)).index, [0, 1, 2, 3, card]) for card in (52, -1, 256 + 4)),
    ("dtype float64", indexer((2, 3)).index, [0.0, 1.0, 2.0, 3.0, 4.0]),
    ("shape", indexer((2, 3)).index, 7),
    *(("at most 7", indexer, shape) for shape in ((), (0,), (2, 0), (3, -1), (2, 6), (1,) * 8)),
)
test_shapes_that_are_no_integers = refusals(("float", indexer, (2.5, 3)), error=TypeError)

test_ranges = refusals(
    ("^range item 'AKx' is not known: allowed are", parse_range, "AA,AKx"),
    ("^range item '' is not known", parse_range, "AA,"),
    ("^range item 'AAs' is not known", parse_range, "AAs"),
    ("^range item 'A5s-K2s' is not known", parse_range, "A5s-K2s"),
    ("^range item 'AK-AQs' is not known", parse_range, "AK-AQs"),
    ("^range item 'KK-AQ' is not known", parse_range, "KK-AQ"),
    (r"^range item 'AsKs\+' is not known", parse_range, "AsKs+"),
    (r"^range item 'QQ\+\+' is not known", parse_range, "QQ++"),
    ("^range item 'KK-QQ-JJ' is not known", parse_range, "KK-QQ-JJ"),
    ("^range item '77 - TT' is not known", parse_range, "77 - TT"),
    ("^range item 'AsAs': 'AsAs' holds the card As twice", parse_range, "AsAs"),
    (r"^range item 'AA:1\.5' has the weight '1\.5': a number from 0 to 1 is needed", parse_range, "AA:1.5"),
    (r"^range item 'AA:-0\.5' has the weight '-0\.5'", parse_range, "AA:-0.5"),
    ("^range item 'AA:' has the weight ''", parse_range, "AA:"),
    ("^range item 'AA:nan' has the weight 'nan'", parse_range, "AA:nan"),
    (r"^range item 'AA:0\.5:0\.5' has the weight '0\.5:0\.5'", parse_range, "AA:0.5:0.5"),
    (r"^range item 'AsAh:0\.5' gives AsAh the weight 0\.5, but an earlier .* 1\.0", parse_range, "22+,AsAh:0.5"),
    (r"^range item 'AK' gives AcKc the weight 1\.0, but an earlier item gives it 0\.0", parse_range, "AKs:0,AK"),
)

READ_ONLY = np.empty((2, 1326), np.uint16)
READ_ONLY.flags.writeable = False
test_strengths = refusals(
    *(("ranges lie within 0 to 134459", river_strengths, *ends) for ends in ((-1, 5), (5, 4), (0, 134460))),
    *(
        (r"\(2, 1326\) uint16 is needed", lambda out=out: river_strengths(0, 2, out=out))
        for out in (np.empty((3, 1326), np.uint16), np.empty((2, 1326), np.int16))
    ),
    ("read-only", lambda: river_strengths(0, 2, out=READ_ONLY)),
    ("workers is 0", lambda: river_strengths(0, 2, workers=0)),
    ("river has shape", runout_sums, np.zeros((5, 1326), np.uint16), 4),
    ("boards of 5 cards", runout_sums, np.zeros((5, 1326), np.uint16), 5),
    ("bins is 1", lambda river: equity_histograms(river, 4, 0, 1, bins=1)),
    ("bins is 1982", lambda river: equity_histograms(river, 4, 0, 1, bins=1982)),
    ("boards of 5 cards", lambda river: equity_histograms(river, 5)),
    ("ranges lie within 0 to 1755", lambda river: equity_histograms(river, 3, 0, 1756)),
    ("uint8 is needed", lambda river: equity_histograms(river, 4, 0, 1, out=np.empty((1, 1326, 50), np.uint16))),
    ("river has shape", lambda river: equity_histograms(river[:10], 4, 0, 1)),
    ("all 1,981 river strengths", preflop_histograms, np.zeros((169, 50), np.int64)),
    *(
        ("169 or 1,326 integers are needed", ochs_features, clusters, 0, 1)
        for clusters in (np.zeros(168, int), np.zeros(169), np.zeros((169, 1), int))
    ),
    *(
        ("without gaps", ochs_features, clusters, 0, 1)
        for clusters in (np.full(169, 1), np.arange(169) % 3 * 2, np.full(169, -1))
    ),
    ("ranges lie within 0 to 134459", ochs_features, np.zeros(169, int), 0, 134460),
    ("clusters is 170", lambda preflop: opponent_clusters(preflop, 170)),
    ("one row for each of 169 classes", lambda preflop: opponent_clusters(preflop[:10])),
)

POINTS = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [2.0, 2.0]])
test_points = refusals(
    ("k is 4, but there are 3 distinct points", kmeans, POINTS, None, 4),
    ("k is 4, but there are 3 distinct points", start, clustering_problem(POINTS), 4),
    ("k is 2, but there are 1 distinct points", start_from, clustering_problem(POINTS[[0, 2]]), POINTS[[0, 1]]),
    ("k is 9, but there are 5 points", start, clustering_problem(POINTS), 9),
    ("distance is 'cosine'", lambda: kmeans(POINTS, None, 2, distance="cosine")),
    ("one weight each", kmeans, POINTS, [1, 2], 2),
    ("positive finite", kmeans, POINTS, [1, 0, 3, 1, 1], 2),
    ("not finite", kmeans, POINTS * np.nan, None, 1),
    ("workers is 0", lambda: kmeans(POINTS, None, 2, workers=0)),
    ("labels lie between 0 and 3, but there are 3 buckets", variance_explained, POINTS[:2], np.array([0, 3]), None, 3),
)
