"""Programs for the environments of vendors (suites.environments): files in, files out, nothing of ours imported."""
