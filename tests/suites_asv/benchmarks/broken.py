import nothing_of_that_name  # noqa: F401


def time_unreachable():
    pass
