"""Progress of long work as a bar that notebooks show, and terminals as well."""

import threading
from typing import Self

from .core.progress import Progress

EVERY = 0.2
"""Seconds from one look at the work to the next."""


class Bar(Progress):
    """A bar of the work done, with rate and time left: ``search(…, progress=bar)``.

    In a notebook it is the widget of tqdm where ipywidgets is installed, else a line of text. Use it as a context
    manager, which takes care that the bar ends whatever happens::

        with Bar() as bar:
            run = seqloom.search("sw", "query.fasta", "proteins.duckdb", progress=bar)

    The notebook's button to interrupt stops the work at once; ``bar.cancellation.cancel()`` from another thread stops
    it in good order, so that it can be resumed.
    """

    def __init__(self, description: str = "") -> None:
        super().__init__()
        self._description = description
        self._ended = threading.Event()
        self._drawing: threading.Thread | None = None

    def begin(self, total: int, unit: str) -> None:
        super().begin(total, unit)
        if self._drawing is None:
            self._drawing = threading.Thread(target=self._draw, name="bar", daemon=True)
            self._drawing.start()

    def end(self) -> None:
        """The work is over: the bar stays as it is."""
        self._ended.set()
        if self._drawing and self._drawing is not threading.current_thread():
            self._drawing.join()

    def _draw(self) -> None:
        import warnings

        with warnings.catch_warnings():  # that there are no widgets, in whose place is text
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm

        began, bar = None, None
        while True:
            over = self._ended.wait(EVERY)
            if began != self.began:
                if bar is not None:
                    bar.close()
                began = self.began
                bar = tqdm(total=self.total or None, unit=self.unit, unit_scale=True, desc=self._description or None)
            if bar is not None:
                bar.n = min(self.done, self.total) if self.total else self.done
                bar.refresh()
            if over:
                break
        if bar is not None:
            bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
