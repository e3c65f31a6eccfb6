"""What callers, workers and schedulers import, once for all that are forked (``forked``)."""

import distributed.cli.dask_scheduler
import distributed.cli.dask_worker
import seqloom.cli
import seqloom.cluster.session
import seqloom.cluster.worker
import seqloom.results
import seqloom.searches
from seqloom.cluster.versions import identity
from seqloom.core.pipeline import compose
from seqloom.installed import registry

identity()
compose(registry(), registry().pipeline("blastp"), {})
__all__ = ["distributed", "seqloom"]
