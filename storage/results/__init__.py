"""Runs and their results: a file for each run under way, and the store of all finished ones."""
