"""null2: a null model for one domain, as biased in composition as the domain's own use of the model.

Odds of each residue under null2 over the background; their logs summed over a domain are its bias correction.
"""

from __future__ import annotations

import numpy as np

from .exact_math import F32, Array32, running_sum
from .forward_reference import DpMatrix, sum_over_lanes
from .profile import FloatProfile, stripe
from .residues import mean_odds, table_by_code
from .traces_reference import TracedDomain


def null2_of_posterior(profile: FloatProfile, posterior: DpMatrix) -> Array32:
    """f32[codes] odds by residue code from the expected use of each state over an envelope."""
    weight = F32(1.0) / F32(len(posterior.n) - 1)
    match = running_sum(posterior.match[1:])[-1] * weight
    insert = running_sum(posterior.insert[1:])[-1] * weight
    outside = F32(0.0)
    for state in (posterior.n, posterior.c, posterior.j):
        outside = outside + running_sum(state[1:])[-1] * weight
    products = profile.null2_match * match
    terms = np.stack([products, np.broadcast_to(insert, products.shape)], axis=2)
    lanes = running_sum(np.moveaxis(terms.reshape(len(products), -1, 4), 1, 0))[-1]
    return table_by_code(sum_over_lanes(lanes) + outside, mean_odds, 1.0)


def null2_of_trace(profile: FloatProfile, domain: TracedDomain) -> Array32:
    """f32[codes] odds by residue code from the nodes that a sampled domain used.

    As in HMMER, a residue of an insert state counts as one of the match state of its node.
    """
    counts = np.bincount(np.array(domain.nodes) - 1, minlength=profile.length).astype(F32)
    usage = stripe(counts * (F32(1.0) / F32(len(domain.nodes))))
    lanes = running_sum(np.moveaxis(profile.null2_match * usage, 1, 0))[-1]
    return table_by_code(sum_over_lanes(lanes), mean_odds, 1.0)
