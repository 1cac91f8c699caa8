"""Energy counters out of a made-up powercap tree: differences, wrap-around, and why there is none."""

import os

import pytest

from bench.measure.meters.energy import EnergyMeter


def zone(root, name, label="package-0", energy="1000", most="262143328850"):
    folder = root / name
    folder.mkdir(parents=True)
    for file, text in (("name", label), ("energy_uj", energy), ("max_energy_range_uj", most)):
        (folder / file).write_text(text + "\n")
    return folder


def test_no_counter_is_absent_with_the_reason_and_never_zero(tmp_path):
    for root in (tmp_path / "nowhere", tmp_path):
        meter = EnergyMeter(root)
        assert meter.absent == "this machine shows no energy counter of its processor (RAPL)"
        assert meter.read() is None
        assert meter.since(meter.read()) is None


def test_packages_add_up_and_their_parts_are_not_counted_twice(tmp_path):
    one, two = zone(tmp_path, "intel-rapl:0"), zone(tmp_path, "intel-rapl:1", "package-1")
    part = zone(tmp_path, "intel-rapl:0:0", "core")
    whole = zone(tmp_path, "intel-rapl:2", "psys")
    meter = EnergyMeter(tmp_path)
    before = meter.read()
    for folder, energy in ((one, 1500), (two, 4000), (part, 10**6), (whole, 10**6)):
        (folder / "energy_uj").write_text(str(energy))
    assert meter.since(before) == 500 + 3000


def test_a_counter_that_started_again_is_followed(tmp_path):
    folder = zone(tmp_path, "intel-rapl:0", energy="999900", most="1000000")
    meter = EnergyMeter(tmp_path)
    before = meter.read()
    (folder / "energy_uj").write_text("300")
    assert meter.since(before) == 400


def test_a_counter_that_falls_silent_is_null(tmp_path):
    folder = zone(tmp_path, "intel-rapl:0")
    meter = EnergyMeter(tmp_path)
    before = meter.read()
    (folder / "energy_uj").write_text("")
    assert meter.since(before) is None
    (folder / "energy_uj").write_text("2000")
    assert meter.since(None) is None
    assert meter.since(before) == 1000


@pytest.mark.parametrize(("files", "says"), [({"energy": "none"}, "energy_uj"), ({"most": ""}, "max_energy_range_uj")])
def test_a_broken_tree_names_the_file(tmp_path, files, says):
    zone(tmp_path, "intel-rapl:0", **files)
    assert EnergyMeter(tmp_path).absent.endswith(f"intel-rapl:0/{says} holds no number")


def test_a_counter_that_may_not_be_read_says_what_to_do(tmp_path, monkeypatch):
    """The kernel lets only root read it; here the root of the tests is told so too."""
    folder = zone(tmp_path, "intel-rapl:0")
    if os.geteuid() == 0:
        forbid(monkeypatch, folder / "energy_uj")
    else:
        (folder / "energy_uj").chmod(0)
    meter = EnergyMeter(tmp_path)
    assert "may not be read; let an administrator" in meter.absent
    assert meter.read() is None


def forbid(monkeypatch, path):
    from pathlib import Path

    plain = Path.read_text

    def read_text(self, *args, **kwargs):
        if self == path:
            raise PermissionError(13, "Permission denied")
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read_text)
