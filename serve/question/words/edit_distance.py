"""Edit distance between two words."""

from __future__ import annotations


def edit_distance(one: str, other: str, most: int) -> int:
    """Return the restricted Damerau-Levenshtein distance, or `most` + 1 if it is greater.

    Edits are insertions, deletions, substitutions and transpositions of adjacent letters; no letter
    is edited twice. F. J. Damerau, "A technique for computer detection and correction of spelling
    errors", CACM 7(3), 1964.
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row = row, [i]
        for j, theirs in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != theirs))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == theirs:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(above) > most:
            return most + 1
        before = above
    return min(row[-1], most + 1)
