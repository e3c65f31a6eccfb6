"""Random cases against the peers: whole outputs compared as bytes, for as long as asked.

``python -m tests.fresh --pipeline blastp --seconds 600`` draws sequences and options, runs seqloom and the peer, and
keeps the files and command lines of every difference in a folder. A case is its pipeline and seed, so
``--seed N --count 1`` draws it again.
"""
