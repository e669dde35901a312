"""What numba is told beyond its decorators: what the processor can, and to compile faster.

The latter reaches into it, so it is done with versions alone that it was tried with.

A kernel holds the code of all that it calls.  numba by itself makes machine code of parts too, which nobody runs; and
it puts each function through most of what the module around it is put through next.  What a kernel calls may be called
from elsewhere, for all that LLVM knows, and so takes every word of every array that it is handed, read or not; once it
is internal, only what it reads (an iteration on ranges of 46 hands takes 0.75 of the time).
"""

from copy import copy
from functools import cache
from importlib import import_module
from typing import Any

KNOWN_VERSIONS = ("0.68.",)
"""Versions of numba whose inner classes are as `part_compiler` takes them to be."""

_ITS_OWN = "_ZN5numba"  # names of numba's functions


def processor_features() -> str:
    """What the processor can, and that vectors may fill its widest registers.

    For many processors with AVX-512, LLVM halves the vectors that it makes of loops.
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
    """Whether the processor that code is made for has registers of masks, as AVX-512 has.

    Without them a masked store takes AMD's processors many steps (3.8 ns for 0.5 on Zen 4), and others a branch a lane.
    """
    config, binding = import_module("numba").config, import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    cpu = config.CPU_NAME or binding.get_host_cpu_name()
    machine = binding.Target.from_default_triple().create_target_machine(cpu=cpu, features=config.CPU_FEATURES or "")
    return "{%k" in machine.emit_assembly(binding.parse_assembly(_STORE))


class Nowhere:
    """Where a part's environment is put: what Python's calls would find, and nobody calls a part from Python."""

    def set_env(self, name: str, environment: Any) -> None:
        """Forget it."""


def part_compiler() -> Any:
    """A compiler of functions without machine code; from now on numba optimises what it compiles once, not twice.

    With other versions than `KNOWN_VERSIONS` this may not be called; there compiling takes longer.
    """
    _copy_less()
    codegen = import_module("numba.core.registry").cpu_target.target_context.codegen()
    compiler: Any = import_module("numba.core.compiler").Compiler
    library = codegen._library_class = _part_library()

    class PartCompiler(compiler):
        """Compiles a part."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.state.library = library(codegen, "part")
            self.state.library.part = True

    return PartCompiler


def _copy_less() -> None:
    """Have numba keep no copy of a function's code that nobody asks for, and what is inlined share its table of names.

    That table it copies, with all variables in it, for every block of every function that is inlined, twice.
    """
    ir: Any = import_module("numba.core.ir")

    def shared(scope: Any, memo: dict[int, Any]) -> Any:
        made = memo[id(scope)] = copy(scope)
        made.localvars = copy(scope.localvars)
        made.localvars._con = dict(scope.localvars._con)
        made.redefined = copy(scope.redefined)
        made.var_redefinitions = scope.var_redefinitions.copy()
        for name, others in scope.var_redefinitions.items():
            made.var_redefinitions[name] = set(others)
        return made

    ir.Scope.__deepcopy__ = shared
    import_module("numba.core.untyped_passes").PreserveIR.run_pass = lambda *_: False


def _part_library() -> Any:
    """The class of libraries of functions, of which some are parts, with bitcode in the place of machine code."""
    library: Any = import_module("numba.core.codegen").JITCodeLibrary
    binding: Any = import_module("llvmlite.binding")

    class Library(library):
        """A function's code; `part`: of a part, of which there is no machine code."""

        part = False

        @property
        def codegen(self) -> Any:
            return Nowhere() if self.part else self._codegen

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None:
            for function in self._final_module.functions if not self.part else ():
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
