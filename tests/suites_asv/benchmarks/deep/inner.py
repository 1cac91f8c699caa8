class Outer:
    """In a package inside the package."""

    def time_deep(self):
        pass


class Unmakeable:
    def __init__(self):
        raise RuntimeError("needs a display")

    def time_it(self):
        pass
