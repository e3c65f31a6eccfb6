"""Forms of cells that are no decimals: what their other bits say, for those who make cells and those who write them."""

SCIENTIFIC, TEXT = 14, 15
"""Forms beside decimals: three digits · 1000 + n are "d.dde-n"; n is the text with this number."""
