"""Where is kept for this user what can be made again: kernels, sources, what was measured, entry points found."""

import os
from pathlib import Path


def user_cache() -> Path:
    """``seqloom`` in ``XDG_CACHE_HOME``, else in ``~/.cache``.

    Raises:
        RuntimeError: there is neither, because the user has no home.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqloom"


def kernel_cache() -> Path:
    """The same for what kernels are made of and into: ``NUMBA_CACHE_DIR`` goes before. Errors as of ``user_cache``."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    return Path(given) / "seqloom" if given else user_cache()
