"""What searches import, once for all that are forked (``tests/forked.py``)."""

import seqloom.cli.main
import seqloom.cli.search
import seqloom.cli.searching
import seqloom.results
import seqloom.searches
from seqloom.core.pipeline import compose
from seqloom.installed import registry

compose(registry(), registry().pipeline("blastp"), {})
__all__ = ["seqloom"]
