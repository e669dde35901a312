"""Compiles users' regret rules: functions from the regrets of an infoset to its next strategy.

The solvers' compiled code calls a rule by the address of its machine code, which it gets as a number.  So kernels stay
in the cache and are not compiled anew for each rule.
"""

from collections.abc import Callable
from math import isclose, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import c_function, carray, errors, intrinsic, part_njit, types, uncached_njit
from mccfr.common.arguments import checked
from mccfr.common.user_code import UserCodeError, function_name, user_error

_SAMPLES = (
    *((0.0,), (-2.0,), (1.0, 0.0), (-1.0, -3.0), (0.0, 0.0, 0.0), (0.25, -4.0, 2.0), (1.0, 1.0, 5.0, -1.0)),
    *((-1.0, 2.0, 3.0, -0.5, 7.0), (3.0, -2.0, 0.0, 0.5, -6.0, 1.0, 0.25, 4.0)),
)
_SCALE = 1024.0
_EXPONENTS = (-60, 60)  # powers of two that regrets may have after many iterations
_TOLERANCE = 1e-6

Function = Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], None]


def _cells() -> Any:
    """Return the numba type of a pointer to float64 cells."""
    return types.CPointer(types.float64)


class RegretRule:
    """A user's rule that replaces regret matching; `regret_rule` creates it.

    name      module and name of the function
    function  function of (regrets [A] float64, strategy [A] float64) that fills `strategy` and does not change
              `regrets`
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.name = function_name(function)
        self._compiled: Any = None
        self._check()

    def __repr__(self) -> str:
        return self.name

    @property
    def address(self) -> int:
        """Return the address of the compiled function; raise `UserCodeError` if it does not compile."""
        if self._compiled is None:
            self._compiled = self._compile()
        return int(self._compiled.address)

    def _compile(self) -> Any:
        rule = uncached_njit(getattr(self.function, "py_func", self.function))

        def called(regrets, strategy, actions):
            rule(carray(regrets, actions), carray(strategy, actions))

        try:
            return c_function(types.void, _cells(), _cells(), types.int64)(called)
        except errors.NumbaError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            why = next((line for line in lines[1:] if not line.startswith(("-", "During", "File"))), lines[0])
            raise UserCodeError(f"the regret rule {self.name} does not compile: {why}") from error

    def _check(self) -> None:
        """Run the uncompiled function on examples of regrets, each at several scales.

        Raises `UserCodeError` if it raises, changes the regrets, fills in numbers that are not probabilities, or
        depends on the scale of the regrets.
        """
        for sample in _SAMPLES:
            once, scaled = self._strategy(sample), self._strategy(tuple(_SCALE * regret for regret in sample))
            where = f"the regret rule {self.name} makes {once} of the regrets {list(sample)}"
            if any(abs(one - other) > _TOLERANCE for one, other in zip(once, scaled, strict=True)):
                raise UserCodeError(
                    f"{where} and {scaled} of {_SCALE:g} times as large ones: the scale of regrets must not matter, "
                    "because it differs from one solver to another"
                )
            for exponent in _EXPONENTS:
                self._strategy(tuple(2.0**exponent * regret for regret in sample))

    def _strategy(self, regrets: tuple[float, ...]) -> list[float]:
        """Return the list of probabilities that the function computes from an infoset's regrets.

        Raises `UserCodeError` if it raises, changes the regrets, or fills in numbers that are not probabilities.
        """
        regrets_read, strategy = np.array(regrets), np.full(len(regrets), np.nan)
        try:
            with np.errstate(all="ignore"):
                self.function(regrets_read, strategy)
        except Exception as error:
            raise user_error(self.function, error, f" for the regrets {list(regrets)}") from error
        result = [float(share) for share in strategy]
        where = f"the regret rule {self.name} makes {result} of the regrets {list(regrets)}"
        valid = all(isfinite(share) and share >= 0 for share in result)
        if not valid or not isclose(sum(result), 1, abs_tol=_TOLERANCE):
            raise UserCodeError(f"{where}: probabilities are needed, which sum to 1")
        if not np.array_equal(regrets_read, regrets):
            raise UserCodeError(f"the regret rule {self.name} changes the regrets {list(regrets)}: it must leave them")
        return result


@checked
def regret_rule(function: Function) -> RegretRule:
    """Return a regret rule made from a function; use it as the decorator `@mccfr.regret_rule`.

    The function takes the regrets of one infoset and the array to fill with its next strategy, both [A] float64 for A
    actions.  The strategy must not depend on the scale of the regrets.  numba compiles the function when a solver first
    needs it, so it must use only what numba supports.

    Raises `UserCodeError` if the function raises, changes the regrets, fills in numbers that are not probabilities, or
    depends on the scale.  Raises `TypeError` if `function` is not callable.
    """
    return RegretRule(function)


@intrinsic
def _cells_on_stack(typing_context, count):
    """Return a pointer to `count` new float64 cells on the stack of the calling kernel."""

    def codegen(context, builder, signature, args):
        return builder.alloca(ir.DoubleType(), args[0])

    return _cells()(types.int64), codegen


@intrinsic
def _call(typing_context, address, regrets, strategy, actions):
    """Call the compiled rule at an address.

    regrets, strategy  pointers to `actions` float64 cells; those of `strategy` are filled in
    """
    signature = types.void(types.int64, _cells(), _cells(), types.int64)

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in args[1:]])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return signature, codegen


@part_njit
def own_rule(address, basis, rows, sigma, offset):
    """Write a row block's strategy into sigma[offset : offset+actions, :count] by a user's rule, in place.

    A row block is the part of a table for the same actions of several infosets, one in each column.  The rule receives
    one column at a time, in float64.

    address  int64 address of the compiled rule
    basis    [slots, columns] regrets that give the strategy; a slot is one action of a row
    rows     a tuple with the block's first `slot`, number of `actions`, first `column` and `count` of columns
    sigma    [slots, columns] receives the strategies, from slot `offset` and column 0 on
    """
    regrets, strategy = _cells_on_stack(rows.actions), _cells_on_stack(rows.actions)
    for k in range(rows.count):
        for a in range(rows.actions):
            regrets[a] = basis[rows.slot + a, rows.column + k]
        _call(address, regrets, strategy, rows.actions)
        for a in range(rows.actions):
            sigma[offset + a, k] = strategy[a]
