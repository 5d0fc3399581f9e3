"""Language codes of PubMed (MARC 21) with their BCP 47 tags and English names."""

from __future__ import annotations

# fmt: off
_LANGUAGES = {
    "afr": ("af", "Afrikaans"), "alb": ("sq", "Albanian"), "ara": ("ar", "Arabic"),
    "arm": ("hy", "Armenian"), "aze": ("az", "Azerbaijani"), "bos": ("bs", "Bosnian"),
    "bul": ("bg", "Bulgarian"), "cat": ("ca", "Catalan"), "chi": ("zh", "Chinese"),
    "cze": ("cs", "Czech"), "dan": ("da", "Danish"), "dut": ("nl", "Dutch"),
    "eng": ("en", "English"), "epo": ("eo", "Esperanto"), "est": ("et", "Estonian"),
    "fin": ("fi", "Finnish"), "fre": ("fr", "French"), "geo": ("ka", "Georgian"),
    "ger": ("de", "German"), "gla": ("gd", "Scottish Gaelic"), "gre": ("el", "Greek"),
    "heb": ("he", "Hebrew"), "hin": ("hi", "Hindi"), "hrv": ("hr", "Croatian"),
    "hun": ("hu", "Hungarian"), "ice": ("is", "Icelandic"), "ind": ("id", "Indonesian"),
    "ita": ("it", "Italian"), "jpn": ("ja", "Japanese"), "kin": ("rw", "Kinyarwanda"),
    "kor": ("ko", "Korean"), "lat": ("la", "Latin"), "lav": ("lv", "Latvian"),
    "lit": ("lt", "Lithuanian"), "mac": ("mk", "Macedonian"), "mal": ("ml", "Malayalam"),
    "mao": ("mi", "Maori"), "may": ("ms", "Malay"), "nor": ("no", "Norwegian"),
    "per": ("fa", "Persian"), "pol": ("pl", "Polish"), "por": ("pt", "Portuguese"),
    "pus": ("ps", "Pushto"), "rum": ("ro", "Romanian"), "rus": ("ru", "Russian"),
    "san": ("sa", "Sanskrit"), "slo": ("sk", "Slovak"), "slv": ("sl", "Slovenian"),
    "spa": ("es", "Spanish"), "srp": ("sr", "Serbian"), "swe": ("sv", "Swedish"),
    "tha": ("th", "Thai"), "tur": ("tr", "Turkish"), "ukr": ("uk", "Ukrainian"),
    "urd": ("ur", "Urdu"), "vie": ("vi", "Vietnamese"), "wel": ("cy", "Welsh"),
}
# fmt: on
# Language codes by English name in lower case.
CODES = {name.casefold(): code for code, (_, name) in _LANGUAGES.items()}


def language_tag(code: str) -> str:
    """Return the BCP 47 tag of a code such as fre, or the code itself if it is not known."""
    return _LANGUAGES.get(code, (code, ""))[0]


def language_name(code: str) -> str:
    """Return the English name of the language, or "" for codes such as mul and und."""
    return _LANGUAGES.get(code, ("", ""))[1]
