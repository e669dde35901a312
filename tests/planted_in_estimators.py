"""Defects planted in evaluations, re-solving and experiments; `DRAWN_59` was drawn with seeds 59 and 592811.

`python tests/mutations.py 59 MODULE...` prints the drawn ones, one for each module. In
`mccfr.play.resolving.observer_ranges` the drawn one changes nothing: it doubles the weight of all hands of a range.
"""

from mutants import Defect

COMPARE, UNITS = "mccfr/experiments/test_compare.py", "mccfr/evaluation/test_samples.py"
EXPLOIT, FIRST = "mccfr/evaluation/test_exploitative_responses.py", "mccfr/evaluation/test_preflop_best_response.py"
AIVAT, MATCH = "mccfr/matches/test_aivat.py", "mccfr/matches/test_match.py"
RESOLVING, SEATS = "mccfr/play/test_resolving.py", "mccfr/play/test_resolving_table.py"
SCIPY = f"{COMPARE}::test_intervals_agree_with_scipy"
PAIRS = f"{COMPARE}::test_pairs_are_ratios_to_the_first_variant_seed_by_seed"
POINTS = f"{COMPARE}::test_variants_meet_only_at_points_at_which_both_were_measured"
WINS = f"{EXPLOIT}::test_a_best_response_wins_what_exact_says"

SIZES = "mccfr/solvers/public/test_size_choice.py"

OWN_OF_ESTIMATORS = (
    Defect(
        "mccfr.solvers.public.size_choice",
        "return max(sets, key=known.__getitem__)",
        "return min(sets, key=known.__getitem__)",
        "The sizes that lose most are chosen.",
        f"{SIZES}::test_a_polarised_range_bets_the_largest_size",
    ),
    Defect(
        "mccfr.solvers.public.size_choice",
        "        if new == kept:\n",
        "        if True:\n",
        "Chosen sizes do not move to better neighbours.",
        f"{SIZES}::test_subsets_move_to_better_neighbours_and_are_asked_once",
    ),
    Defect(
        "mccfr.solvers.public.size_choice",
        "@ ranges[player]",
        "@ ranges[1 - player]",
        "The values of hands are weighted by the range of the opponent.",
        f"{SIZES}::test_trees_side_by_side_have_the_values_that_they_have_alone",
    ),
    Defect(
        "mccfr.experiments.result_table",
        "float(logs.std(ddof=1))",
        "float(logs.std(ddof=0))",
        "The interval of a geometric mean is too narrow: its variance is that of a whole population.",
        SCIPY,
    ),
    Defect(
        "mccfr.experiments.result_table",
        "width = student95(len(values) - 1) * float(np.std(values, ddof=1))",
        "width = 1.959964 * float(np.std(values, ddof=1))",
        "The interval of a mean of few seeds is that of many.",
        SCIPY,
    ),
    Defect(
        "mccfr.experiments.result_table",
        "float(np.std(values, ddof=1)) / math.sqrt(len(values))",
        "float(np.std(values, ddof=1))",
        "The interval of a mean is too wide: it is that of one seed.",
        SCIPY,
    ),
    Defect(
        "mccfr.experiments.result_table",
        "else own[seed] / others[seed] for seed in both]",
        "else own[seed] / others[both[0]] for seed in both]",
        "Every seed is compared with the first one.",
        PAIRS,
    ),
    Defect(
        "mccfr.experiments.result_table",
        "        if point not in experiment.points:\n            continue\n",
        "",
        "Points of a former experiment stand in the table.",
        POINTS,
    ),
    Defect(
        "mccfr.evaluation.exploitative_responses",
        "return Answer(wins + offset, float(found[RESPOND]) + offset,",
        "return Answer(wins, float(found[RESPOND]) + offset,",
        "What an answer wins leaves out the money that was in the pot.",
        WINS,
    ),
    Defect(
        "mccfr.evaluation.exploitative_responses",
        "locks = locks.renumbered(game.tree.arrays.block, before)",
        "locks = None",
        "Locks are ignored where hands are told apart.",
        WINS,
    ),
    Defect(
        "mccfr.evaluation.preflop_best_response",
        "left = rest.sum(axis=1) / 2 / _without_each(weight, strata)",
        "left = rest.sum(axis=1) / _without_each(weight, strata)",
        "What is left without a board is that of both players.",
        FIRST,
    ),
    Defect(
        "mccfr.matches.match",
        "pairs = -(-hands // 2)",
        "pairs = hands // 2",
        "An odd number of hands loses one.",
        f"{MATCH}::test_units_follow_from_their_numbers_alone",
    ),
)

DRAWN_59 = (
    Defect(
        "mccfr.evaluation.samples",
        "self.path.unlink(missing_ok=True)",
        "pass",
        "A file of samples that nothing has come into stays.",
        f"{UNITS}::test_a_file_that_nothing_has_come_into_is_removed",
    ),
    Defect(
        "mccfr.evaluation.preflop_best_response",
        "return bias, student95(int((units - 1)[undrawn > 0].sum())) * error if undrawn.any() else 0.0",
        "return bias, student95(int((units - 2)[undrawn > 0].sum())) * error if undrawn.any() else 0.0",
        "The estimate has fewer degrees of freedom.",
        FIRST,
    ),
    Defect(
        "mccfr.matches.match",
        'whole = "" if self.side is None else self.side.fingerprint()',
        'whole = "" if not (self.side is None) else self.side.fingerprint()',
        "Hands of another strategy are taken for those of this one.",
        f"{MATCH}::test_units_follow_from_their_numbers_alone",
    ),
    Defect(
        "mccfr.matches.aivat",
        "while spot.street < self.dealing.streets - 1:",
        "while not (spot.street < self.dealing.streets - 1):",
        "Cards after an all-in are not corrected.",
        f"{AIVAT}::test_the_mean_is_exact_whatever_the_heuristic",
    ),
    Defect(
        "mccfr.matches.equity_heuristic",
        "if self._opponent_reach is None or self._opponent_reach[0] is not opponent_weights:",
        "if not (self._opponent_reach is None or self._opponent_reach[0] is not opponent_weights):",
        "The opponent's range is that of another spot.",
        f"{AIVAT}::test_equity_and_the_policys_own_play_leave_less",
    ),
    Defect(
        "mccfr.evaluation.compatible_games",
        "yield from _tree_differences(first.tree, second.tree)",
        "pass",
        "Games of other trees are the same.",
        "mccfr/evaluation/test_head_to_head_buckets.py::test_other_games_are_refused_in_one_sentence",
    ),
    Defect(
        "mccfr.evaluation.self_consistency",
        "done += 1",
        "done += 2",
        "Twice as many boards are told of.",
        "mccfr/evaluation/test_self_consistency.py::test_sampled_flops_cover_and_do_not_depend_on_workers",
    ),
    Defect(
        "mccfr.play.resolving.gadgets",
        "return positive / total if total > 0 else self._live / self._live.sum()",
        "return positive / total if not (total > 0) else self._live / self._live.sum()",
        "A gadget learns nothing.",
        f"{RESOLVING}::test_against_fixed_values_a_gadget_learns_its_best",
    ),
    Defect(
        "mccfr.play.resolving.all_spots",
        "response = earlier.best_response(1 - player, earlier_range, earlier.tables(strategy))",
        "response = earlier.best_response(2 - player, earlier_range, earlier.tables(strategy))",
        "Gifts are those of another player.",
        f"{RESOLVING}::test_spots_share_a_gift",
    ),
    Defect(
        "mccfr.experiments.definition",
        "points = _spaced(table, source)",
        "points = _spaced(source, table)",
        "A text is taken for a table.",
        f"{COMPARE}::test_shipped_experiments_are_experiments",
    ),
    Defect(
        "mccfr.experiments.experiment_runs",
        "_note_points(experiment, out, run)",
        "pass",
        "The points of a run are not kept.",
        COMPARE,
    ),
    # --- seed 592811 ---
    Defect(
        "mccfr.experiments.result_table",
        "_write(out / PAIRS, PAIR_COLUMNS, pairs(experiment, rows))",
        "pass",
        "Pairs are not written.",
        COMPARE,
    ),
    Defect(
        "mccfr.evaluation.local_best_response.lbr_evaluation",
        "found[number, seat] = responder.play_all(streets, own)",
        "pass",
        "Nothing is won from a policy that is solved again.",
        f"{SEATS}::test_local_best_response_takes_as_much_where_nothing_is_solved",
    ),
    Defect(
        "mccfr.evaluation.local_best_response.hand",
        "yield action, self._sign * self._lines.folded(state) * total, SAME * total",
        "pass",
        "Local best response never folds.",
        "mccfr/evaluation/test_local_best_response.py",
    ),
    Defect(
        "mccfr.evaluation.self_consistency",
        "note(public, walk, player)",
        "note(walk, public, player)",
        "Losses are noted of another object.",
        "mccfr/evaluation/test_self_consistency.py",
    ),
    Defect(
        "mccfr.play.resolving.solve",
        "self._tables[name][:] = pots[block // 2] * table",
        "pass",
        "Re-solving begins without the policy's play.",
        f"{RESOLVING}::test_what_is_solved_begins_with_the_strategy_in_force",
    ),
)

IN_ESTIMATORS = (*OWN_OF_ESTIMATORS, *DRAWN_59)
