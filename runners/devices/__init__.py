"""What benchmarks compute on. One module per device; each is a bench.ports.Device."""
