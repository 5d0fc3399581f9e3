from cluster.text.folding import fold_letters


def test_letters_are_folded_to_one_form() -> None:
    for given, folded in {
        "S\u00f8rensen \u0141ucja \u0110or\u0111e": "sorensen lucja dorde",
        "\u00deo\u0301r\u00f0ur \u00c6 \u0153 \u0131\u0130 \u0126": "thordur ae oe ii h",
        "Sjo\u0308gren Sj\u00f6gren stra\u00dfe": "sjogren sjogren strasse",
        "5 \u00b5M 5 \u03bcM": "5 \u03bcm 5 \u03bcm",
        "\ufb01brin CO\u2082 \uff24\uff2e\uff21 \U0001d4b3": "fibrin co2 dna x",
        "Drug\u2122 1\u2103": "drug\u2122 1\u2103",
        "\u0645\u062b\u0627\u0644 \uac00": "\u0645\u062b\u0627\u0644 \uac00",
    }.items():
        assert fold_letters(given) == folded
