"""Whether a sentence only tells what was done, or a title only names what it is about.

The reader takes "We randomised 100 patients with Y to X or placebo" and "X in Y" for a yes to
"Does X help in Y?". Neither says what was found.
"""

from __future__ import annotations

import re
from functools import lru_cache

from cluster.text.sentences import sentence_spans
from serve.support.read_mood import only_stated


def _any_of(words: str, *patterns: str) -> re.Pattern[str]:
    """Any of the words, in which "*" stands for an ending and "_" for a space, or a pattern."""
    listed = (re.escape(w).replace(r"\*", r"\w*").replace("_", " ") for w in words.split())
    return re.compile("|".join([rf"\b(?:{'|'.join(listed)})\b", *patterns]), re.IGNORECASE)


# What is done to find something out.
_STEPS = """
randomi[sz] assign allocat enrol enroll recruit includ select screen search assess evaluat examin
investigat stud explor measur record monitor compar analy[sz] administer treat test review collect
retriev extract pool link conduct perform determin calculat estimat obtain follow interview survey
match stratif invit us dispens describ summari[sz] outlin creat design
"""
_STEP = rf"(?:{'|'.join(_STEPS.split())})"
_DONE, _DOES = rf"(?:given|carried out|undertaken|{_STEP}(?:ed|ied|led))", rf"{_STEP}(?:e|y)?"
_PEOPLE = """
patients participants subjects women men children adults volunteers individuals infants animals rats
mice controls group groups
"""
_METHOD = _any_of(
    "under_way underway ongoing in_progress",
    rf"\bwe (?:(?:\w+ly|also|then|first|here|have) )*{_DONE}\b",
    rf"\bwe (?:will )?(?:\w+ly )?{_DOES}\b",
    rf"\b(?:was|were|will be|has been|have been)(?: (?:\w+ly|also|then|first|being))* {_DONE}\b",
    rf"\b(?:{'|'.join(_PEOPLE.split())})\b[^,;]{{0,80}} (?:receive|received|underwent|completed)\b",
    r"\b(?:is|are) (?:described|discussed|summari[sz]ed|outlined|presented)\b",
    rf"\bthis (?:article|paper|review|protocol|chapter|study) (?:presents|discusses|{_STEP}e?s)\b",
)
# "The benefit remains unclear", "Further trials are needed": it is not known.
_OPEN = re.compile(
    r"\b(?:remains?|is|are|was|were|still)(?: \w+ly| still| yet)? "
    r"(?:unclear|unknown|uncertain|controversial|debated|disputed|inconclusive"
    r"|to be (?:determined|established|elucidated|confirmed|clarified))\b"
    r"|\b(?:conflicting|inconsistent|inconclusive) (?:results|evidence|data|findings|reports)\b"
    r"|\b(?:trials?|studies|research|work|investigations?|data|evidence) (?:[\w-]+ ){0,8}"
    r"(?:is|are) (?:\w+ )?(?:needed|required|warranted)\b",
    re.IGNORECASE,
)
# With one of these a sentence may say what was found.
_FINDING = _any_of(
    """
    no not none neither nor never fail fails failed failure_of failure_to lack* that as_a as_an
    found show* demonstrat* observed seen noted reveal* suggest* indicat* confirms confirmed
    conclud* prove proves proved proven support supports supported improv* reduc* increas* decreas*
    lower* higher greater fewer less more most better worse* superior* inferior* effective
    ineffective safe unsafe safely harms harmed harmful benefit* beneficial useful help* successful*
    prevent prevents prevented protect protects protected protective cause causes caused causing
    induce induces induced trigger triggers triggered associated related relates relate correlat*
    predict* significant* differ differs differed differen* develop develops developed occur*
    respon* remission remitted recover* resolv* survived survives died dies relaps* recurs recurred
    recurrence tolerat* toxic toxicit* fatal adverse malformation* complication* death*
    contraindicated recommend* avoid* should must can may led lead leads resulted_in results_in
    inhibit inhibits inhibited suppress suppresses suppressed activate activates activated promote
    promotes promoted enhance* attenuate* delay* prolong* relie* alleviat* exacerbat* affects
    affected alters altered changes changed elevat* raises raised rose rises fell requires required
    require bind* bound express expresses expressed regulates regulated encodes encoded mediates
    mediated
    """,
    "%",
    r"\bp ?[<=>]",
)
# What a sentence on an effect may speak of, beside findings.
_EFFECT = _any_of(
    """
    efficac* effect* activ* cure cures cured curative work* treat* therap* mainstay first-line
    standard choice indicated option approved licensed role linked link risk risks potential used
    utility important outcome* excellent good well
    """
)
# A question that asks whether something has an effect, and whether that is good.
_OF_EFFECT = _any_of(
    """
    effective* efficac* safe* harm* benefi* useful help* improv* reduc* decreas* increas* lower*
    rais* prevent* protect* caus* induc* trigger* lead worsen* affect* delay* prolong*
    cure cures cured work superior better
    """
)
# A question that what was done answers: whether a thing is used, was tested, or is there.
_OF_METHOD = _any_of(
    """
    use used using employed applied tested studied investigated examined evaluated assessed measure
    measured performed undergone trial trials available exist exists existing approved reported
    described proposed administered given
    """,
    r"^\W*(?:is|are|was|were) there\b",
)
# What is asked to be there may still have to be found: "Is there a benefit of X?".
_TO_BE_FOUND = re.compile(
    r"\bthere (?:\w+ ){0,3}(?:association|link|relation\w*|correlation|connection|benefit|effect"
    r"|risk|difference|increase|increased|evidence|advantage|harm)\b",
    re.IGNORECASE,
)
# "Can X be used in pregnancy?" asks for leave, which others' use does not give; "Can X be used to
# treat Y?" asks for practice.
_LEAVE = re.compile(r"^\W*(?:can|may|could|should|must)\b|\bsafe", re.IGNORECASE)
_PRACTICE = re.compile(
    r"\b(?:used|employed|applied|measured|performed) "
    r"(?:for|to|as|in the (?:treatment|diagnosis|management))\b",
    re.IGNORECASE,
)
# A purpose or a matter, which a title names: "to prevent Y", "for the prevention of Y".
_PURPOSE = re.compile(
    r"\bto (?:prevent|reduce|improve|increase|decrease|lower|enhance|delay|protect|promote|inhibit"
    r"|relieve|alleviate|attenuate|suppress|avoid|change|support|prolong)\b"
    r"|\b(?:for|in|on|and|of) (?:the )?(?:\w+ )?"
    r"(?:prevention|reduction|improvement|enhancement|relief|support|recovery|protection)\b"
    r"|\b(?:benefits?|harms?|risks?) (?:and|or|versus) (?:benefits?|harms?|risks?)\b"
    r"|\bbenefits? of\b",
    re.IGNORECASE,
)
# Words by which a title that is no sentence may say something of what it names.
_SAYS = _any_of(
    """
    had would should must by due secondary leading resulting following via through impaired high low
    rare common frequent unusual novel new promising emerging potent potential key essential
    critical major important crucial absence evidence resistance reversal complication cause
    consequence predictor marker biomarker inhibitor agonist antagonist as keeps aids takes plays
    links needs depend encode contribute interact controls limits impacts influences modulate impair
    disrupt restore rescue reverse mimic underlie determine govern facilitate stimulate ameliorate
    mitigate abolish abrogate aggravate eliminate augment boost strengthen stabili* recruit remodels
    cleave phosphorylates methylates overcome elicit exert exhibit display accelerate maintain
    provide produce confer generate identify remain reflect represent
    """,
    r"-(?:induced|associated|related|mediated|dependent|resistant|derived|positive|negative|like"
    r"|driven|linked|responsive|sensitive)\b",
)
# The verb of a title that is a sentence, in its usual form: "X reduces Y".
_THIRD_PERSON = """
improves reduces increases decreases lowers shows demonstrates reveals suggests indicates confirms
prevents protects causes induces triggers predicts differs develops resolves worsens relieves
alleviates delays prolongs exacerbates affects alters raises requires binds expresses regulates
encodes mediates inhibits suppresses activates promotes enhances attenuates supports fails proves
kills cures helps offers gives makes acts works depends drives contributes interacts targets
modulates impairs disrupts blocks stops slows halts restores rescues reverses mimics underlies
determines governs facilitates stimulates ameliorates mitigates abolishes abrogates aggravates
eliminates augments boosts strengthens stabilizes stabilises recruits cleaves overcomes elicits
exerts exhibits displays accelerates maintains provides produces confers generates identifies
remains reflects represents normalizes normalises diminishes leads
"""
_STATES = re.compile(
    r"\b(?:is|are|was|were|has|have|does|do|did|can|cannot|may|might|could|will|not)\b"
    rf"|\b(?:{'|'.join(_THIRD_PERSON.split())})\b(?! (?:of|in)\b)",
    re.IGNORECASE,
)


def asks_of_method(question: str) -> bool:
    """Whether what was done, or a title's subject, answers the question: "Is X used in Y?"."""
    if not _OF_METHOD.search(question) or _TO_BE_FOUND.search(question):
        return False
    return not _LEAVE.search(question) or bool(_PRACTICE.search(question))


def is_silent(sentence: str, question: str) -> bool:
    """Whether the sentence, or the last of several, cannot be an answer to the yes/no question.

    It only tells what was done, or where an effect is asked for has no word of a finding or effect.
    """
    if asks_of_method(question):
        return False
    last = next((sentence[b:e] for b, e in reversed(sentence_spans(sentence))), "")
    bare = not _FINDING.search(last) and not _EFFECT.search(last)
    return only_tells_method(last) or (bare and bool(_OF_EFFECT.search(question)))


def only_tells_method(sentence: str) -> bool:
    """Whether the sentence tells what was done or that something is not known, and no finding."""
    told = _METHOD.search(sentence) or _OPEN.search(sentence)
    return bool(told) and not _FINDING.search(sentence)


def only_prepares(sentence: str) -> bool:
    """Whether the sentence says only what is to be found out, or what was done for it."""
    said = only_stated(sentence)
    told = _METHOD.search(said) or not any(map(str.isalnum, said))
    return bool(told) and not _FINDING.search(said)


@lru_cache(maxsize=1024)
def only_found(text: str) -> str:
    """`text` with spaces for the sentences that only tell what was done.

    It has the length of `text`, and each character its place.
    """
    kept = list(text)
    for begin, end in sentence_spans(text):
        if only_tells_method(text[begin:end]):
            kept[begin:end] = " " * (end - begin)
    return "".join(kept)


def is_statement(title: str) -> bool:
    """Whether the title is a sentence with a verb of its own: "X reduces Y in Z"."""
    return bool(_STATES.search(title))


def only_names(title: str) -> bool:
    """Whether the title names what it is about, as "X in Y: a trial" does, and says nothing of it.

    One with a word that may be a verb or a finding says something.
    """
    said = _PURPOSE.sub("", title)
    return not (is_statement(said) or _SAYS.search(said) or _FINDING.search(said))
