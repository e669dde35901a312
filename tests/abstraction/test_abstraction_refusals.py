"""Error messages of functions on cards, ranges, strengths and points."""

import numpy as np
from refusals import refusals

from abstraction import cards
from abstraction.boards import locate_board
from abstraction.cards import parse_cards
from abstraction.clustering.kmeans import kmeans
from abstraction.clustering.two_level import share_buckets
from abstraction.hand_evaluator import board_strengths, category, strength
from abstraction.ochs import opponent_clusters
from abstraction.range_notation import parse_range
from abstraction.strength import hand_strength, river_strengths

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
        for board in ([0, 1], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 3], [0, 1, 1], [0, 1, 2, 3, 52], [0, 1, 300])
    ),
    *(("run from 1 to 7462", category, value) for value in (0, 7463, -1)),
    ("has 1 cards", hand_strength, "As", "Qs7h2d"),
    ("has 3 cards", hand_strength, "AsKdQd", ""),
    ("twice", hand_strength, "AsAs", "Qs7h2d"),
    ("2 cards", hand_strength, "AsKd", "Qs7h"),
    ("the card As is in the hand AsKd and on the board", hand_strength, "AsKd", "Qs7hAs"),
    ("twice", hand_strength, "AsKd", "Qs7h2dQs"),
    ("is not a card", hand_strength, "AsKx", ""),
)

test_ranges = refusals(
    ("^range item 'AKx' is not known: allowed are", parse_range, "AA,AKx"),
    ("^range item 'AAs' is not known", parse_range, "AAs"),
    ("^range item 'A5s-K2s' is not known", parse_range, "A5s-K2s"),
    ("^range item 'AK-AQs' is not known", parse_range, "AK-AQs"),
    ("^range item 'KK-AQ' is not known", parse_range, "KK-AQ"),
    (r"^range item 'AsKs\+' is not known", parse_range, "AsKs+"),
    (r"^range item 'QQ\+\+' is not known", parse_range, "QQ++"),
    ("^range item 'KK-QQ-JJ' is not known", parse_range, "KK-QQ-JJ"),
    ("^range item 'AsAs': 'AsAs' holds the card As twice", parse_range, "AsAs"),
    (r"^range item 'AA:1\.5' has the weight '1\.5': a number from 0 to 1 is needed", parse_range, "AA:1.5"),
    (r"^range item 'AA:-0\.5' has the weight '-0\.5'", parse_range, "AA:-0.5"),
    ("^range item 'AA:' has the weight ''", parse_range, "AA:"),
    ("^range item 'AA:nan' has the weight 'nan'", parse_range, "AA:nan"),
    (r"^range item 'AA:0\.5:0\.5' has the weight '0\.5:0\.5'", parse_range, "AA:0.5:0.5"),
    (r"^range item 'AsAh:0\.5' gives AsAh the weight 0\.5, but an earlier .* 1\.0", parse_range, "22+,AsAh:0.5"),
    (r"^range item 'AK' gives AcKc the weight 1\.0, but an earlier item gives it 0\.0", parse_range, "AKs:0,AK"),
)

POINTS = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [2.0, 2.0]], np.float32)
test_clusters = refusals(
    *(("ranges lie within 0 to 134459", river_strengths, *ends) for ends in ((-1, 5), (5, 4), (0, 134460))),
    ("workers is 0", lambda: river_strengths(0, 2, workers=0)),
    ("clusters is 170: there are 169", lambda preflop: opponent_clusters(preflop, 170)),
    ("k is 4, but there are 3 distinct points", kmeans, POINTS, np.ones(5, np.int64), 4),
    ("k is 8, but 3 groups of 7 distinct points", share_buckets, np.ones(3), np.array([2, 1, 4]), 8),
    ("distance is 'cosine'", lambda: kmeans(POINTS, np.ones(5, np.int64), 2, distance="cosine")),
)
