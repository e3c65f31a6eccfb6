"""Mutated input for everything that is read: files, options, databases.

A case has one of three outcomes: the right answer, a refusal in one line (a ``SeqloomError``), or a failure. Each is
made from the name of its target, a seed and a number alone, so that ``--one`` does it again.
"""
