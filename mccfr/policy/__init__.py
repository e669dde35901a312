"""Policies: directories of flat arrays that hold a quantised average strategy and its game."""

from mccfr.policy.reader import Policy, verify_policy
from mccfr.policy.strategy_profile import Behaviour, Profile
from mccfr.policy.writer import is_policy, write_policy

__all__ = ["Behaviour", "Policy", "Profile", "is_policy", "verify_policy", "write_policy"]
