"""Cursors: a place in the ranking of a query, from which the next page goes on.

A cursor is base64 of a checksum and, under it, the place: digests of the query and of the index, the rank, the score
and the id of the last hit. The checksum finds damage. It is no secret: whoever makes a cursor gets a page, as with
``offset``.
"""

from __future__ import annotations

import base64
import math
import struct
from dataclasses import dataclass

from pyserini_compneg.compose import Operators
from pyserini_compneg.compose.queries import ParsedQuery
from pyserini_compneg.expression import Filter
from pyserini_compneg.search import Hit, SignedImpactSearcher
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.files import content_digest

_PLACE = struct.Struct("<8s8sIf")
_CHECKSUM_BYTES = 4
_VERSION = b"2"


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a cursor belongs to: digests of a query with all that composes it, and of an index's content."""

    query: bytes
    index: bytes

    @staticmethod
    def of(
        searcher: SignedImpactSearcher,
        query: ParsedQuery,
        operators: Operators,
        filter: Filter | None,
        sort: str | None = None,
    ) -> Ranking:
        allowed = "" if filter is None else str(sorted(filter.to_json().items()))
        composing = operators, searcher.settings, getattr(searcher.encoder, "name", "")
        has_context = query.reading is not None
        asked = f"{query.text}\n{has_context} {composing}\n{allowed}" + (f"\n{sort}" if sort else "")
        return Ranking(
            _digest(asked.encode(), 8),
            _digest(searcher.reader.content_id.encode(), 8),
        )

    def cursor(self, rank: int, last: Hit) -> str:
        place = _PLACE.pack(self.query, self.index, rank, last.score) + last.docid.encode()
        return base64.urlsafe_b64encode(_digest(_VERSION + place, _CHECKSUM_BYTES) + place).decode().rstrip("=")

    def place(self, cursor: str) -> tuple[int, Hit]:
        """The rank and the hit behind which a cursor goes on. Refuses a cursor of another ranking."""
        query, index, rank, last = _decoded(cursor)
        if index != self.index:
            raise _refusal("the index has changed since the cursor was made", "begin again without a cursor")
        if query != self.query:
            raise _refusal(
                "the cursor is of another query, filter, order or operators", "send it with those that it came from"
            )
        return rank, last


def _decoded(cursor: str) -> tuple[bytes, bytes, int, Hit]:
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        checksum, place = packed[:_CHECKSUM_BYTES], packed[_CHECKSUM_BYTES:]
        query, index, rank, score = _PLACE.unpack_from(place)
        hit = Hit(place[_PLACE.size :].decode(), score)
    except (ValueError, struct.error):  # errors of base64 and of UTF-8 are ValueErrors
        checksum, place, hit = b"", b"", Hit("", math.nan)
    if not hit.docid or not math.isfinite(hit.score) or checksum != _digest(_VERSION + place, _CHECKSUM_BYTES):
        raise _refusal("this is no cursor of an answer", "send the field cursor of the last answer as it is")
    return query, index, rank, hit


def _refusal(what: str, remedy: str) -> ArgumentError:
    return ArgumentError(what, where="cursor", remedy=remedy)


def _digest(content: bytes, length: int) -> bytes:
    return bytes.fromhex(content_digest(content, digits=2 * length))
