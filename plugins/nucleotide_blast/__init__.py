"""Nucleotide BLAST: blastn, megablast and discontiguous megablast, as BLAST+ 2.12 searches.

The two strands of a query are searched as two frames against the forward strand of the targets. Between the stages a
hit on the query's reverse strand has query_frame -1 and target_frame 1; the traceback turns that into query_frame 1
and target_frame -1, as alignments are reported. Coordinates are on the forward strands throughout.
"""
