"""Results as one page of HTML that needs nothing else: figures as SVG, tables, alignments, and where they are from."""
