"""Bare numbers in options, bet sizes and configurations: refused if their unit is ambiguous.

Shows:

* Bare numbers for sizes, shares or targets are refused with their meanings (test_a_bare_size_is_refused_everywhere,
  test_a_bare_share_is_refused_with_both_meanings)
* Every other option that takes a number has one unit, or counts (test_every_option_that_takes_a_number_is_listed)
"""

import click
import pytest
from commands import options
from refusals import refused

from mccfr.cli.shared_options import Count, Duration, MemorySizes, Share
from mccfr.config.toml_files import config_from, load_config
from mccfr.config.value_limits import share_of, share_text
from mccfr.games.menu import parse_size
from mccfr.games.registry import build_game
from mccfr.view.spot_requests import spot_request

SPOT = {"name": "holdem-subgame", "board": "QsJh2h7c3d", "ranges": {"oop": "AA", "ip": "KK"}, "pot": 10}
SPOT |= {"effective_stack": 20}
SHARES = "--rake --share --to --threshold --against-threshold"
REFUSED = {
    **dict.fromkeys(SHARES.split(), (Share, "can mean 0.3% or 30%")),
    "--memory": (MemorySizes, "0.3 can mean 0.3B, 0.3MB or 0.3GB"),
}
CHIPS, POTS = "--pot --stack --rake-cap --big-blind --blinds", "--allin-spr"
SECONDS = "--time --budget --every --patience --per-hand --response --silence --wait"
COUNTS = """
--against-checkpoint --boards --checkpoint --deals --flops --hands --iterations --machines --nodes --player --players
--port --response-nodes --run-outs --sample --seed --set-aside --speed --top --values-boards --vectors --workers
"""
TAKEN = " ".join([CHIPS, POTS, SECONDS, COUNTS]).split()
"""Options that accept a bare number, because it has one unit."""


KINDS = (Share, MemorySizes, Duration, Count, click.types.IntParamType, click.types.FloatParamType)


NUMBERS = {option.opts[0]: option.type for _, option in options() if isinstance(option.type, KINDS)}


def test_every_option_that_takes_a_number_is_listed():
    assert set(NUMBERS) == {*REFUSED, *TAKEN}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_bare_share_or_amount_is_refused(name):
    kind, words = REFUSED[name]
    assert isinstance(NUMBERS[name], kind)
    with pytest.raises(click.BadParameter) as caught:
        NUMBERS[name].convert("0.3", None, None)
    assert words in caught.value.message


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_a_bare_number_of_one_unit_is_accepted(name):
    number = {"--player": 1, "--players": 2, "--deals": 600}.get(name, 7)
    assert NUMBERS[name].convert(str(number), None, None) == number


def test_counts_of_methods_may_have_an_exponent():
    assert NUMBERS["--response-nodes"].convert("2e9", None, None) == 2_000_000_000
    with pytest.raises(click.BadParameter, match="'1e4' is not a whole number from 8 to 1,755"):
        Count(8, 1755).convert("1e4", None, None)


@pytest.mark.parametrize(
    ("text", "meanings"),
    [
        ("33", "33% of the pot, 33bb or 33chips"),
        ("0.33", "33% of the pot, 0.33bb or 0.33chips"),
        ("2.5", "250% of the pot, 2.5x the last bet or 2.5chips"),
        ("1", "100% of the pot, 1bb or 1chips"),
    ],
)
def test_a_bare_size_is_refused_everywhere(text, meanings):
    words = f"bet size '{text}' has no unit, and can mean {meanings}"
    refused(words, parse_size, text, "bets")
    fields = {"board": "QsJh2h7c3d", "oop": "AA", "ip": "KK", "pot": "10", "stack": "20"}
    for field in ("bets", "raises", "donk"):
        refused(words, spot_request, {**fields, field: f"50%,{text}"})
    for menu in (
        {"first": [float(text)]},
        {"river": {"later": [text]}},
        {"river": {"oop": {"sizes": [[float(text)]]}}},
    ):
        refused(
            words, lambda menu: build_game(config_from({"game": {**SPOT, "menu": menu}}, "a file").game, None), menu
        )


@pytest.mark.parametrize(
    ("number", "meanings"), [("0.3", "0.3% or 30%"), ("1", "1% or 100%"), ("5", "5% or 5 chips"), (0.05, "0.05% or 5%")]
)
def test_a_bare_share_is_refused_with_both_meanings(number, meanings):
    refused(f"can mean {meanings}", share_of, number)
    for key in ("rake", "to"):
        refused(f"{key}: .*can mean {meanings}", spot_request, {key: str(number)})


def test_shares_of_a_configuration_are_texts_in_per_cent():
    for document, key in (
        ({"game": {**SPOT, "rake": 0.05}}, "game.rake = 0.05"),
        ({"game": SPOT, "run": {"exploitability_pot": 0.05}}, "run.exploitability_pot = 0.05"),
    ):
        refused(f"{key} is not allowed.* can mean 0.05% or 5%", config_from, document, "a file")
    found = config_from({"game": {**SPOT, "rake": "5%"}, "run": {"exploitability_pot": "0.3%"}}, "a file")
    assert (share_of(found.game.rake), found.run.goal) == (0.05, 0.003)
    for share, text in ((0.07, "7%"), (1 / 3, "33.33333333333333%"), (1.0, "100%")):
        assert (share_text(share), share_of(text)) == (text, share)
    refused("it must be above 0", config_from, {"game": SPOT, "run": {"exploitability_pot": "0%"}}, "a file")


def test_a_byte_order_mark_is_ignored(tmp_path):
    (tmp_path / "oop.txt").write_text("\ufeffAA,KK", encoding="utf-8")
    text = '[game]\nname = "holdem-subgame"\nboard = "QsJh2h7c3d"\npot = 10\neffective_stack = 20\n'
    text += 'ranges = {oop = "@oop.txt", ip = "QQ"}\n'
    (tmp_path / "spot.toml").write_text("\ufeff" + text, encoding="utf-8")
    assert load_config(tmp_path / "spot.toml").game.ranges["oop"] == "AA,KK"
