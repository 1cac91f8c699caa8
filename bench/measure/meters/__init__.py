"""One file per quantity that a worker can read about itself. Standard library only."""
