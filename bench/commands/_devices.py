"""Devices by name: the modules of runners.devices."""

from __future__ import annotations


def device_names() -> list[str]:
    """All that a benchmark can be asked to run on, the processor first; whether one is here tells its worker."""
    import pkgutil

    from runners import devices

    names = {module.name.replace("_", "-") for module in pkgutil.iter_modules(devices.__path__)}
    return ["cpu", *sorted(name for name in names - {"cpu"} if not name.startswith("-"))]


def known_device(name: str | None) -> str | None:
    """The name as it is; null: none was given. Raises UsageError for a device that nobody wrote."""
    from bench.errors import UsageError

    if name is None:
        return None
    known = device_names()
    if name.partition(":")[0].replace("_", "-") not in known:
        raise UsageError(f"there is no device {name!r}; there are {', '.join(known)}.")
    return name


def devices_here() -> dict[str, str]:
    """Every device by name: real, emulated or estimated where it is here, else why it is not."""
    from bench.api import Skip
    from bench.measure.contract import device_of

    found = {}
    for name in device_names():
        try:
            found[name] = device_of(name, 1).kind
        except Skip as reason:
            found[name] = f"no: {str(reason).removeprefix(f'needs the device {name}: ')}"
    return found
