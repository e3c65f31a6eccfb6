"""How far text and query are the same, many symbols at a time or one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.kernels.jit import kernel
from seqloom.plugins.exact_match.same_symbols_cpu import same_before, same_behind

BEHIND = np.full(64, 255, np.uint8)


@kernel
def _both(text, r, query, p, most):
    return same_before(text, r, query, p, most), same_behind(text, r, query, p)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([0, 0, 0, 0, 0, 1]), min_size=1, max_size=150), st.integers(0, 99), st.integers(0, 80),
       st.integers(0, 140))
def test_as_many_symbols_are_the_same_as_one_by_one(symbols, r, p, most):
    text, query = np.array([*symbols, 254], np.uint8), np.append(np.array(symbols[::-1], np.uint8), BEHIND)
    r, p = min(r, len(symbols)), min(p, len(symbols))
    most = min(most, r, p)
    before = next((n for n in range(most) if text[r - n - 1] != query[p - n - 1]), most)
    behind = next(n for n in range(len(text) - r) if text[r + n] != query[p + n])
    found = _both(text, *(np.uint64(n) if isinstance(n, int) else n for n in (r, query, p, most)))
    assert tuple(map(int, found)) == (before, behind)
