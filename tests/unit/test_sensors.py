"""Clock and temperature out of a made-up /sys."""

from pathlib import Path

import pytest

from bench.measure.meters.sensors import MOST_CPUS, Sensors


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def frequencies(root: Path, *mhz: float) -> Path:
    for cpu, value in enumerate(mhz):
        write(root, **{f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq": str(int(value * 1000))})
    return root


def test_a_machine_that_tells_nothing_gives_nulls_and_never_zeros(tmp_path):
    sensors = Sensors(tmp_path)
    sensors.follow({0, 1})
    assert sensors.read() == {"clock_mhz": None, "temperature_c": None}


def test_the_clock_is_that_of_the_cpus_the_process_may_use(tmp_path):
    sensors = Sensors(frequencies(tmp_path, 1000, 2000, 3600))
    assert sensors.read()["clock_mhz"] is None
    sensors.follow({2})
    assert sensors.read()["clock_mhz"] == 3600
    sensors.follow({0, 1})
    assert sensors.read()["clock_mhz"] == 1500


def test_a_large_machine_is_read_in_part(tmp_path):
    sensors = Sensors(frequencies(tmp_path, *[1000] * MOST_CPUS, *[5000] * 120))
    sensors.follow(set(range(MOST_CPUS + 120)))
    assert sensors.read()["clock_mhz"] == 1000


@pytest.mark.parametrize(
    ("files", "celsius"),
    [
        ({"class/hwmon/hwmon0/name": "nvme", "class/hwmon/hwmon0/temp1_input": "70000"}, None),
        (
            {
                "class/hwmon/hwmon1/name": "coretemp",
                "class/hwmon/hwmon1/temp1_input": "41000",
                "class/hwmon/hwmon1/temp2_input": "64500",
                "class/hwmon/hwmon1/temp2_label": "Package id 0",
            },
            64.5,
        ),
        (
            {
                "class/thermal/thermal_zone0/type": "acpitz",
                "class/thermal/thermal_zone0/temp": "20000",
                "class/thermal/thermal_zone1/type": "x86_pkg_temp",
                "class/thermal/thermal_zone1/temp": "55000",
            },
            55.0,
        ),
        ({"class/thermal/thermal_zone0/type": "cpu-thermal", "class/thermal/thermal_zone0/temp": "broken"}, None),
    ],
    ids=["another device", "the package before a core", "a thermal zone", "unreadable"],
)
def test_the_temperature_is_the_processors(tmp_path, files, celsius):
    assert Sensors(write(tmp_path, **files)).read()["temperature_c"] == celsius
