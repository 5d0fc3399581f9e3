"""Common words that are not treated as entities of a question, although many are MeSH headings."""

from __future__ import annotations

from cluster.text.vocabulary import normalise

_FUNCTION_WORDS = """
a about after all also am among an and any are as at be because been before being between both
but by can could de did do does done during each either every for from had has have he her his
how i if in into is it its la may me might more most much my near no nor not of off on one or
other our out over own per same she should since so some such than that the their them then
there these they this those thought through to too under until up upon us via was we were what when
where which while who whom whose why will with within without would you your yes
"""

_QUESTION_WORDS = """
affect associated association available base cause character classification common
comparative comparison consensus current define definition describe description difference
different difficulty effect element event evidence example exist explain fact feature find form
formula function give goal group history idea include information intention interaction involve
kind knowledge known lead learning level life list literature logic main maintenance mean
meaning mechanism method methods name names nature number occur organization part people
person persons play point position present prevalence process property purpose question rate
recent reference related report research respect result risk role roles science show sign
stage state study subject success symptom system target test theory thing time topic treat
treatment trial type use used value way word work world year
"""

# Verbs that report methods and results, and words that belong to quantities.
_REPORTING_WORDS = """
analysed analyzed average based bind binds caused causing compared concluded containing day days
detected demonstrated examined expressed following harboring harbouring identified including
indicated induce induced induces investigated involving linked link mediated mediates month months
observed occurring performed produced promote promotes range resulting reveal revealed size
suggest suggested undergoing using versus week weeks
"""

_EVERYDAY_BIOMEDICINE = """
acid adult aged algorithm animal back biology blood body cell cells chemistry child clinical
condition culture diagnosis diet disease disorder dose drive drug emergency environment enzyme
family female food friend gene genes genetic genetics genome growth habit hand head health
hospital human humans image infant infection inhibition injury laboratory language light male
medicine men molecule mutation nurse organ paper parent pathology patient patients physician
plant population procedure prognosis protein proteins research safety sex software survival
survivor syndrome therapeutic therapeutics therapy tissue tissues variant water white woman
women
"""

EVERYDAY_WORDS = frozenset(
    normalise(word)
    for word in (
        f"{_FUNCTION_WORDS} {_QUESTION_WORDS} {_REPORTING_WORDS} {_EVERYDAY_BIOMEDICINE}".split()
    )
)
"""All words above, normalised by `normalise`."""
