"""Which schema revisions this version knows, so that nothing needs to ask Alembic at start.

``HEAD`` is what new files get; ``KNOWN`` lists all, oldest first; a test compares both with Alembic's scripts. Files of
the revisions in ``READABLE`` can be read without migrating them.
"""

HEAD = {"sequences": "0009", "results": "0006", "models": "0001"}
KNOWN = {"sequences": ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009"),
         "results": ("0001", "0002", "0003", "0004", "0005", "0006"),
         "models": ("0001",)}
READABLE = dict(KNOWN)
