"""Parse untrusted YAML, with limits on its size and depth."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import yaml
from yaml.composer import ComposerError

from cluster.errors import InputError, cut
from cluster.parse_json import contained

# Aliases count each time they are used, so that a few lines cannot expand to billions of values.
MAX_VALUES = 10_000
MAX_DEPTH = 20
# Python refuses to print numbers with more than 4300 digits, even in an error message.
MAX_NUMBER = 2**63 - 1
# Errors that the loader raises, besides YAMLError, for a value that does not match its tag.
_LOADER_ERRORS = (ValueError, LookupError, AttributeError, TypeError, OverflowError)
# Characters that are invalid in paths, URLs and text: NUL and unpaired surrogates.
_INVALID_CHARACTERS = re.compile("[\0\ud800-\udfff]")


class _Loader(yaml.SafeLoader):
    """Loader that rejects a key given twice, of which PyYAML would keep the last."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Return the mapping; raise ComposerError for a duplicate key."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key)
            if name in seen:
                raise ComposerError(
                    None, None, f"the key {key.value} is given twice", key.start_mark
                )
            seen.add(name)
        return node


def parse_yaml(text: str, where: str) -> Any:
    """Return the value of `text`, without Python objects.

    Raises InputError that names `where` if the text is not YAML, has more than `MAX_VALUES` values,
    is nested deeper than `MAX_DEPTH`, or contains NUL, an unpaired surrogate or a number of more
    than 64 bits.
    """
    try:
        value = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: not YAML: {cut(str(error))}") from None
    except _LOADER_ERRORS as error:
        why = f": {cut(str(error))}" if isinstance(error, ValueError) else ""
        raise InputError(f"{where}: a value does not match its type or tag{why}") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deep for settings") from None
    _check(value, where)
    return value


def _check(value: Any, where: str) -> None:
    level, count = [value], 1
    for _ in range(MAX_DEPTH):
        for each in level:
            if isinstance(each, str) and _INVALID_CHARACTERS.search(each):
                raise InputError(f"{where}: NUL or an unpaired surrogate in {cut(repr(each))}")
            if isinstance(each, int) and abs(each) > MAX_NUMBER:
                raise InputError(f"{where}: a number above {MAX_NUMBER}, the largest allowed")
        level = list(islice(contained(level), MAX_VALUES))
        count += len(level)
        if not level:
            return
        if count > MAX_VALUES:
            raise InputError(f"{where}: more than {MAX_VALUES} values, too many for settings")
    raise InputError(f"{where}: nested too deep (more than {MAX_DEPTH} levels)")
