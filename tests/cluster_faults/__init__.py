"""Faults of a cluster at random times: nothing is lost, nothing doubled, nothing hangs, no process stays behind.

``python -m tests.cluster_faults --times 10`` carries out each of them so many times.
"""
