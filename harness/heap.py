"""glibc's heap: no cache of freed blocks for each thread, not even one that keeps nothing.

The tunables of a frozen agent (soft.launch) leave this cache with one size of blocks and room for none of them. Still,
whenever a block of that size is freed, eight bytes of what stood in it are compared with a random number. Under the
model that would be a condition on an input that has nothing to do with it, or on a text known for one input only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace

from harness.frozen import Region

# The end of struct malloc_par, glibc 2.26 to at least 2.41: sbrk_base, tcache_bins, tcache_max_bytes, tcache_count,
# tcache_unsorted_limit.
_PARAMETERS = struct.Struct("<5Q")
_BINS = 8


def without_cache(regions: Iterable[Region]) -> tuple[Region, ...]:
    """The same memory with no sizes of blocks for the cache, where it is the one that we know."""
    regions = tuple(regions)
    heap = next((region for region in regions if region.name == "[heap]"), None)
    if heap is None:
        return regions
    known = _PARAMETERS.pack(heap.start, 1, 0, 0, 0)
    return tuple(_changed(region, known) for region in regions)


def _changed(region: Region, known: bytes) -> Region:
    content = region.content
    if content is None or "w" not in region.permissions or not region.name.startswith("/") or content.count(known) != 1:
        return region
    at = content.index(known) + _BINS
    return replace(region, content=content[:at] + bytes(8) + content[at + 8 :])
