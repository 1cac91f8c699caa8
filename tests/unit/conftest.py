"""Pages of the dashboard against a real SQLite database, run by Streamlit's own AppTest."""

from contextlib import closing
from pathlib import Path

import pytest


class Site:
    """A dashboard on a database that does not exist before something is filled in."""

    def __init__(self, file):
        self.file = file

    def store(self, *, create=True):
        """The store, with the summaries that history needs; to be closed."""
        from bench.commands._shared import estimates
        from db.store import open_store

        return closing(open_store(f"sqlite:///{self.file}", create=create, summarise=estimates))

    def fill(self, *runs):
        """Store runs."""
        with self.store() as store:
            store.add_many(runs)

    def show(self, page, **state):
        """One page, `compare` or `app`, at the address with that state."""
        from streamlit.testing.v1 import AppTest

        import dashboard

        place = "app.py" if page == "app" else f"views/{page}.py"
        test = AppTest.from_file(str(Path(dashboard.__file__).parent / place), default_timeout=60)
        for name, value in state.items():
            test.query_params[name] = value
        return test.run()

    def html(self, test):
        """All of our own HTML; there was no exception."""
        assert not test.exception, test.exception
        return "\n".join(part.proto.body for part in test.get("html"))

    def text(self, page, **state):
        """The HTML of a page."""
        return self.html(self.show(page, **state))

    def query(self, test, name):
        """A query parameter; AppTest gives a list unless the script wrote it."""
        value = test.query_params[name]
        return value[0] if isinstance(value, list) else value


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Nothing read in one test is seen by another; connections are closed."""
    import streamlit as st

    file = tmp_path / "bench.db"
    monkeypatch.setenv("BENCH_DATABASE", f"sqlite:///{file}")
    yield Site(file)
    st.cache_data.clear()
    st.cache_resource.clear()
