"""Changes numba's internals to compile kernels faster and to use the full vector width.

The changes depend on numba's internal classes, so they are applied only to the tested versions (`KNOWN_VERSIONS`).

A kernel contains the code of all kernels that it calls, its *parts*. numba alone would also make machine code of each
part, which is never run.  An array argument is several words (address, lengths and strides).  LLVM must assume that a
part is called from elsewhere, so the part loads them all.  Marked as internal to the kernel, a part loads only the
words it uses.  A CFR iteration on ranges of 46 hands then takes 0.75 of the time.

LLVM simplifies the functions of a part, but optimises only whole kernels.  Else it would optimise a small part again in
every part around it, which took a fifth of the compile time of large kernels.
"""

from copy import copy
from functools import cache
from importlib import import_module
from typing import Any

KNOWN_VERSIONS = ("0.68.",)
"""Versions of numba with which `part_compiler` was tested."""

_ITS_OWN = "_ZN5numba"  # prefix of numba's own functions
_UNKEPT = "numba.dynamic.globals"  # prefix of addresses, with which code cannot be kept on disk


def processor_features() -> str:
    """Return the processor's features for LLVM, with full use of 512-bit vectors.

    For many processors with AVX-512, LLVM uses 256-bit vectors by default.
    """
    features: str = import_module("numba.core.codegen").get_host_cpu_features()
    return f"{features},-prefer-256-bit" if "+avx512f" in features else features


_STORE = """
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
define void @store(<8 x float> %row, ptr %place, <8 x i1> %mask) {
  call void @llvm.masked.store.v8f32.p0(<8 x float> %row, ptr %place, i32 4, <8 x i1> %mask)
  ret void
}
"""


@cache
def stores_masked_vectors() -> bool:
    """Return whether the processor has mask registers, as with AVX-512.

    With them one instruction stores chosen elements of a vector fast.  Without them such a store takes 3.8 ns instead
    of 0.5 on AMD Zen 4.
    """
    config, binding = import_module("numba").config, import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    cpu = config.CPU_NAME or binding.get_host_cpu_name()
    machine = binding.Target.from_default_triple().create_target_machine(cpu=cpu, features=config.CPU_FEATURES or "")
    return "{%k" in machine.emit_assembly(binding.parse_assembly(_STORE))


class Nowhere:
    """Takes the place of a part's code generator, and discards the part's numba environment.

    A part is a kernel that only other kernels call, compiled into them.  The environment holds Python globals, which
    only a function that Python calls needs.
    """

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing with the environment of the function `name`, which numba passes."""


def part_compiler() -> Any:
    """Return a compiler class for parts (functions without machine code); change numba to use them.

    The code of a part is then optimised only within the kernels that contain it.  Call this only with the versions in
    `KNOWN_VERSIONS`; with others, compiling takes longer.
    """
    _copy_less()
    codegen = import_module("numba.core.registry").cpu_target.target_context.codegen()
    compiler: Any = import_module("numba.core.compiler").Compiler
    library = codegen._library_class = _part_library()

    class PartCompiler(compiler):
        """Compiles a `Part`, which only kernels call, to LLVM bitcode without machine code."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.state.library = library(codegen, "part")
            self.state.library.part = True

    return PartCompiler


def _copy_less() -> None:
    """Stop numba from copying each function's code and the table of variables of inlined code.

    The copies are never used. numba copies the table twice for every block of every inlined function.
    """
    ir: Any = import_module("numba.core.ir")

    def shared(scope: Any, memo: dict[int, Any]) -> Any:
        copied = memo[id(scope)] = copy(scope)
        copied.localvars = copy(scope.localvars)
        copied.localvars._con = dict(scope.localvars._con)
        copied.redefined = copy(scope.redefined)
        copied.var_redefinitions = scope.var_redefinitions.copy()
        for name, others in scope.var_redefinitions.items():
            copied.var_redefinitions[name] = set(others)
        return copied

    ir.Scope.__deepcopy__ = shared
    import_module("numba.core.untyped_passes").PreserveIR.run_pass = lambda *_: False


def _part_library() -> Any:
    """Return a subclass of numba's class of compiled code that can keep it as bare LLVM bitcode."""
    library: Any = import_module("numba.core.codegen").JITCodeLibrary
    binding: Any = import_module("llvmlite.binding")

    class Library(library):
        """The code of one function: machine code, or LLVM bitcode alone if `part` is True."""

        part = False

        @property
        def codegen(self) -> Any:
            return Nowhere() if self.part else self._codegen

        def _optimize_functions(self, module: Any) -> None:
            if self.part:
                super()._optimize_functions(module)
            module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None:
            if self.part and not any(each.name.startswith(_UNKEPT) for each in self._final_module.global_variables):
                return  # each kernel that contains the part optimises it
            for function in self._final_module.functions:
                ours = not function.is_declaration and not function.name.startswith(_ITS_OWN)
                if ours and function.linkage == binding.Linkage.linkonce_odr:
                    function.linkage = "internal"
            super()._optimize_final_module()

        def _finalize_final_module(self) -> None:
            if not self.part:
                super()._finalize_final_module()
                return
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0 if self.part else super().get_pointer_to_function(name)

        def serialize_using_object_code(self) -> tuple[str, str, Any]:
            if not self.part:
                return super().serialize_using_object_code()
            return self.name, "part", self._get_module_for_linking().as_bitcode()

        @classmethod
        def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Any:
            name, kind, bitcode = state
            if kind != "part":
                return super()._unserialize(codegen, state)
            loaded = cls(codegen, name)
            loaded.part, loaded._final_module = True, binding.parse_bitcode(bitcode)
            loaded._finalize_final_module()
            return loaded

    return Library
