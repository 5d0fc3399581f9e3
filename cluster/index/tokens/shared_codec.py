"""Opens the codec that all segments of a version share, which its manifest names."""

from __future__ import annotations

from cluster.index.layout import codec_file
from cluster.index.manifest import TokensEntry, check_artefact
from cluster.index.tokens.codec import TokenCodec, read_codec
from cluster.storage.locations import Location


def open_codec(index: Location, tokens: TokensEntry | None) -> TokenCodec | None:
    """Return the verified codec of a version's tokens, or None if it stores no tokens.

    Raises IndexFormatError if it is missing or damaged, and InputError if a store cannot be
    read.
    """
    if tokens is None:
        return None
    path = index / codec_file(tokens.codec.sha256)
    check_artefact(path, tokens.codec)
    return read_codec(path)
