"""One file per verb: the only place where store, devices and core are wired together."""
