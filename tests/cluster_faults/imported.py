"""What callers, workers and schedulers import, once for all that are forked (``forked``)."""

import distributed.cli.dask_scheduler
import distributed.cli.dask_worker
import seqloom.cluster.session
import seqloom.cluster.worker
from seqloom.cluster.versions import identity

import tests.imported

identity()
__all__ = ["distributed", "seqloom", "tests"]
