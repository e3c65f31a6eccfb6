"""What a search writes: after it, or batch by batch while it goes on."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .core.classes import NamedTuple
from .core.errors import Cancelled
from .core.pipeline import Plan
from .output_formats import reads_once

if TYPE_CHECKING:
    from .run import Run
    from .storage.results.streamed_run import Channel, StreamedRun


class Output(NamedTuple):
    """One output of a search.

    Attributes:
        format: its name and its fields; "" for the pipeline's own.
        write: writes it.
    """

    format: str
    write: "Callable[[Run], None]"


def all_streamed(outputs: Sequence[Output], plan: Plan) -> bool:
    """Whether all outputs can be written batch by batch, and there are any."""
    return bool(outputs) and all(reads_once(output.format, plan) for output in outputs)


class Writing:
    """Outputs that are written, and what went wrong with them: that is raised when everything else is done."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = outputs
        self._errors: list[Exception] = []

    def write(self, run: "Run") -> None:
        """Write all outputs of a finished run."""
        for output in self._outputs:
            self._write(output, run)

    def check(self) -> None:
        """Raise what went wrong first."""
        for error in self._errors:
            raise error

    @contextmanager
    def meanwhile(self, results: "StreamedRun", run_of: "Callable[[Channel], Run]") -> Iterator[None]:
        """Write all outputs while the block searches; when it ends, they are written.

        Args:
            run_of: makes the run that a writer is given.
        """
        threads = [threading.Thread(target=self._read, args=(output, channel, run_of(channel)), name="writer",
                                    daemon=True)
                   for output in self._outputs for channel in [results.channel()]]
        for thread in threads:
            thread.start()
        try:
            yield
            results.end()
        except BaseException as error:
            results.close()
            for thread in threads:
                thread.join()
            if isinstance(error, Cancelled):
                self.check()
            raise
        for thread in threads:
            thread.join()

    def _read(self, output: Output, channel: "Channel", run: "Run") -> None:
        try:
            self._write(output, run)
        finally:
            channel.closed = True

    def _write(self, output: Output, run: "Run") -> None:
        try:
            output.write(run)
        except Cancelled:
            pass  # whoever searches says why
        except Exception as error:
            self._errors.append(error)
