"""How records, tables and networks are written down: what the suite `serialization` reads again."""
