# Thin aliases: everything is in dev.py, which needs no make.
PYTHON ?= python3

.PHONY: quick test check setup lock
quick test check setup lock:
	@$(PYTHON) dev.py $@
