"""Where benchmarks run: machines, their conditions, devices, the lock, later the fleet."""
