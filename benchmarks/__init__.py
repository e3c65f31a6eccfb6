"""Reproducible comparisons with other programs."""
