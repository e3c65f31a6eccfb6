"""Sizes of memory as people write them."""

import pytest
from seqloom.core.errors import OptionError
from seqloom.core.units import parse_bytes


@pytest.mark.parametrize(("text", "size"), [
    ("512M", 512 << 20), ("8G", 8 << 30), ("8g", 8 << 30), (" 8 GB ", 8 << 30), ("1.5GiB", 3 << 29), ("2T", 2 << 40),
    ("4096", 4096), ("64kib", 64 << 10), (123, 123), (None, None), ("", None),
])
def test_sizes(text, size) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["0", "0G", "-1G", "8Q", "G", "1e9", "8 G G", "lots"])
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(OptionError, match=f"--device-memory needs a size such as 512M or 8G, not '{text}'"):
        parse_bytes(text, "--device-memory")
