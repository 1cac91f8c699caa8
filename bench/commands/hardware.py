"""`bench hardware`: what this machine is, and by which tags work finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bench.model import Machine


@click.command("hardware")
@click.option("--tag", "tags", multiple=True, help="What people call this machine; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def command(tags: tuple[str, ...], as_json: bool) -> None:
    """Print this machine's fingerprint, its tags, and which devices can be used.

    Two machines that differ in speed have two fingerprints, whatever they are called; one machine has
    one, after a reboot and under load too.
    """
    import json

    from bench.commands._devices import devices_here
    from bench.commands._shared import config_of
    from bench.wire import plain
    from runners.hardware import hardware_tags
    from runners.machine import read_machine

    config = config_of(tags=tags)
    machine = read_machine(config.tags)
    found = hardware_tags(machine, config.cache)
    devices = devices_here()
    if as_json:
        document = {
            "fingerprint": machine.fingerprint, "tags": list(found), "machine": plain(machine), "devices": devices
        }  # fmt: skip
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(_text(machine, found, devices))


def _text(machine: Machine, tags: tuple[str, ...], devices: dict[str, str]) -> str:
    width = max(map(len, devices))
    lines = [machine.label, f"fingerprint  {machine.fingerprint}", f"tags         {' '.join(tags)}"]
    lines += [f"virtual      {machine.virtual}"] if machine.virtual else []
    for accelerator in machine.accelerators:
        driver = f", driver {accelerator.driver}" if accelerator.driver else ""
        lines.append(f"{accelerator.kind:<11}  {accelerator.model}{driver}")
    lines += ["", "devices", *(f"  {name:<{width}}  {state}" for name, state in devices.items())]
    return "\n".join(lines)
