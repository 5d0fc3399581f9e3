"""Fold characters that people type in different ways to one form."""

from __future__ import annotations

import unicodedata

# Letters that Unicode does not decompose into an ASCII letter and a mark.
_LETTERS = str.maketrans(
    {
        "\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u00f0": "d", "\u00e6": "ae", "\u0153": "oe",
        "\u0131": "i", "\u00fe": "th", "\u0127": "h", "\u0167": "t", "\u014b": "n",
    }
)  # fmt: skip


def fold_letters(text: str) -> str:
    """Return the text in lower case and in ASCII letters where equivalents exist.

    Diacritics are removed, in composed and decomposed form. Ligatures, subscripts, full-width forms
    and the micro sign are replaced by ordinary letters and digits. Symbols keep their form, because
    a trademark sign, for example, is not part of the word before it.
    """
    if text.isascii():
        return text.lower()
    decomposed = "".join(map(_decomposed, text)).casefold()
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", bare.translate(_LETTERS))


def _decomposed(character: str) -> str:
    return unicodedata.normalize("NFKD" if character.isalnum() else "NFD", character)
