"""The same search on a Dask cluster: its workers carry out units, the caller plans, reduces and keeps.

``connection`` finds the cluster, ``session`` has its workers checked, ``executor`` carries units to them with what they
need (``payloads``), ``worker`` is what runs there, and ``messages`` is what goes between the two. Dask is imported when
a cluster is asked for.
"""
