"""The codec that all segments of a version share, as its manifest names it."""

from __future__ import annotations

from cluster.index.layout import codec_file
from cluster.index.manifest import TokensEntry, check_artefact
from cluster.index.tokens.codec import TokenCodec, read_codec
from cluster.storage.places import Place


def open_codec(index: Place, tokens: TokensEntry | None) -> TokenCodec | None:
    """The codec of a version's tokens, verified; None where it keeps none.

    Raises IndexFormatError where it is missing or damaged, InputError where a store cannot be
    read.
    """
    if tokens is None:
        return None
    path = index / codec_file(tokens.codec.sha256)
    check_artefact(path, tokens.codec)
    return read_codec(path)
