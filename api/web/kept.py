"""Pages of results that are kept ready."""

from pathlib import Path

KEPT = 300


class KeptPages:
    """Those that were looked at last, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def of(self, *ids: str) -> Path:
        """Where the page of a run is, or that of two which are compared."""
        return self.folder / f"{'+'.join(ids)}.html"

    def forget(self, id: str) -> None:
        """Remove all that shows a run."""
        for path in self.folder.glob(f"*{id}*.html"):
            path.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Leave no more than are kept."""
        there = {}
        for path in self.folder.glob("*.html"):
            try:
                there[path] = path.stat().st_mtime
            except FileNotFoundError:
                continue
        for path in sorted(there, key=lambda path: there[path], reverse=True)[KEPT:]:
            path.unlink(missing_ok=True)
