"""torch.compile with a cache of its own, so that its first cost and that of every later process can be told apart."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.api import Skip
from suites.artifacts import cache_folder, kept
from suites.imports import need

TORCH = "pip install 'inference-bench[torch]'"
COMPILERS = ("c++", "g++", "clang++")

HERE = Path(__file__)


def compiler() -> None:
    """Raises Skip where there is no C++ compiler, which torch.compile and AOTInductor need on a CPU."""
    if not any(map(shutil.which, COMPILERS)):
        raise Skip("torch.compile needs a C++ compiler: install g++ or clang++")


def use_cache(folder: Path) -> None:
    """Let torch.compile keep what it makes in `folder`, for this process; forget what was compiled before."""
    torch = need("torch", TORCH)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)  # read at every compilation
    torch.compiler.reset()


def first_call(module: Any, inputs: Sequence[Any]) -> tuple[Callable[[], Any], float]:
    """(call of the compiled module on these tensors, seconds until its first answer)."""
    torch = need("torch", TORCH)
    start = time.perf_counter()
    made = torch.compile(module)

    def call() -> Any:
        with torch.inference_mode():
            return made(*inputs)

    call()
    return call, time.perf_counter() - start


def warm(name: str, module: Any, inputs: Sequence[Any], *, sources: Sequence[Path]) -> tuple[Callable[[], Any], float]:
    """(call of the compiled module, seconds that compiling it took the first time on this machine).

    Later processes find the compiled code in the cache. sources: files of the code that makes the module.
    """
    compiler()
    shelf = cache_folder() / "inductor"

    def compile_cold() -> dict[str, float]:
        shutil.rmtree(shelf / name, ignore_errors=True)
        use_cache(shelf / name)
        return {"seconds": first_call(module, inputs)[1]}

    cold = kept(f"compile-{name}", compile_cold, sources=[HERE, *sources], packages=["torch"])
    use_cache(shelf / name)
    return first_call(module, inputs)[0], float(cold["seconds"])
