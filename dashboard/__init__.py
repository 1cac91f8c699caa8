"""Pages in a browser. `bench dashboard` starts them; only dashboard.data opens a store.

Streamlit puts this folder first on sys.path: no module here may be named like one of our packages
or like a module of the standard library (tests/unit/test_dashboard_rooms.py).
"""
