"""Detectors of change points, one file each, all behind `bench.ports.Detector`. `bench.detect` puts them together."""
