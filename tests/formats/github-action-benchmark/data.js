window.BENCHMARK_DATA = {
  "lastUpdate": 1767312000000,
  "repoUrl": "https://forge.example/team/sorts",
  "entries": {
    "Rust": [
      {
        "commit": {
          "author": {"name": "A", "email": "a@example.com"},
          "id": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
          "message": "Sort faster",
          "timestamp": "2026-01-01T01:00:00+01:00",
          "url": "https://forge.example/team/sorts/commit/0a1b2c3d"
        },
        "date": 1767225900000,
        "tool": "cargo",
        "benches": [{"name": "sort::small", "value": 120, "range": "± 3", "unit": "ns/iter"}]
      },
      {
        "commit": {"id": "1b2c3d4e5f60718293a4b5c6d7e8f90123456789", "message": "m", "timestamp": "2026-01-02T00:00:00Z"},
        "date": 1767312000000,
        "tool": "cargo",
        "benches": [
          {"name": "sort::small", "value": 90, "range": "± 2", "unit": "ns/iter"},
          {"name": "sort::gone", "value": null, "unit": "ns/iter"}
        ]
      }
    ],
    "Python": [
      {
        "commit": {"id": "1b2c3d4e5f60718293a4b5c6d7e8f90123456789", "message": "m", "timestamp": "2026-01-02T00:00:00Z"},
        "date": 1767312060000,
        "tool": "pytest",
        "benches": [
          {"name": "test_sort.py::test_sort", "value": 2500.5, "range": "stddev: 0.1", "unit": "iter/sec", "extra": "mean: 0.4 msec"}
        ]
      },
      {
        "commit": {"id": "1b2c3d4e5f60718293a4b5c6d7e8f90123456789", "message": "m", "timestamp": "2026-01-02T00:00:00Z"},
        "date": 1767312120000,
        "tool": "go",
        "benches": [
          {"name": "BenchmarkSort", "value": 300.5, "unit": "ns/op", "extra": "1000 times\n8 procs"},
          {"name": "BenchmarkSort", "value": 310, "unit": "ns/op", "extra": "1000 times\n8 procs"},
          {"name": "BenchmarkSort - B/op", "value": 64, "unit": "B/op"}
        ]
      },
      {
        "commit": {"id": "1b2c3d4e5f60718293a4b5c6d7e8f90123456789", "message": "m", "timestamp": "2026-01-02T00:00:00Z"},
        "date": 1767312180000,
        "tool": "customBiggerIsBetter",
        "benches": [{"name": "recall", "value": "0.95", "unit": "share"}]
      }
    ]
  }
}
