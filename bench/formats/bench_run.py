"""Our own runs, as `bench export` writes them: moved from one database to another, raw samples and key included."""

from __future__ import annotations

from collections.abc import Iterator

from bench.errors import FormatError, WireError
from bench.formats._upload import Upload
from bench.formats._values import keys
from bench.model import Run
from bench.wire import SCHEMA, canonical, decode_run


class BenchRun:
    """One run a line."""

    name = "bench"
    title = "bench export"

    def sniff(self, upload: Upload) -> bool:
        """It says so itself."""
        return all(keys(d) and d.get("schema") == SCHEMA for d in upload.documents or [upload.json])

    def read(self, upload: Upload) -> Iterator[Run]:
        """The runs as they were stored elsewhere."""
        documents = [line for line in upload.lines if line.strip()] if upload.documents else [upload.text]
        for document in documents:
            try:
                yield canonical(decode_run(document.encode(), "it"))
            except WireError as error:
                raise FormatError(f"cannot be read: {str(error).rstrip('.')}") from None


FORMAT = BenchRun()
