"""What a search is: alphabets, sequences, records, scoring, stage interfaces, pipelines, the engine and its back ends.

Nothing here knows how a particular algorithm works (``plugins``), how anything is stored (``storage``) or how a person
asks (``cli``). Other folders depend on this one; this one depends on none of them.
"""
