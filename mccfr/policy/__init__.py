"""Policies: directories of flat arrays that hold a quantised average strategy and its game."""

from mccfr.policy.profile import Behaviour, Profile
from mccfr.policy.read import Policy, verify_policy
from mccfr.policy.write import is_policy, write_policy

__all__ = ["Behaviour", "Policy", "Profile", "is_policy", "verify_policy", "write_policy"]
