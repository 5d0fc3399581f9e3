"""Common words that are not treated as entities of a question, although many are MeSH headings.

They are function words, question words, verbs that report methods and results, words that belong to
quantities, and everyday words of biomedicine.
"""

from __future__ import annotations

from cluster.text.vocabulary import normalise

_WORDS = """
a about acid adult affect after aged algorithm all also am among an analysed analyzed and animal any
are as associated association at available average back base based be because been before being
between bind binds biology blood body both but by can cause caused causing cell cells character
chemistry child classification clinical common comparative compared comparison concluded condition
consensus containing could culture current day days de define definition demonstrated describe
description detected diagnosis did diet difference different difficulty disease disorder do does
done dose drive drug during each effect either element emergency environment enzyme event every
evidence examined example exist explain expressed fact family feature female find following food for
form formula friend from function gene genes genetic genetics genome give goal group growth habit
had hand harboring harbouring has have he head health her his history hospital how human humans i
idea identified if image in include including indicated induce induced induces infant infection
information inhibition injury intention interaction into investigated involve involving is it its
kind knowledge known la laboratory language lead learning level life light link linked list
literature logic main maintenance male may me mean meaning mechanism mediated mediates medicine men
method methods might molecule month months more most much mutation my name names nature near no nor
not number nurse observed occur occurring of off on one or organ organization other our out over own
paper parent part pathology patient patients people per performed person persons physician plant
play point population position present prevalence procedure process produced prognosis promote
promotes property protein proteins purpose question range rate recent reference related report
research respect result resulting reveal revealed risk role roles safety same science sex she should
show sign since size so software some stage state study subject success such suggest suggested
survival survivor symptom syndrome system target test than that the their them then theory
therapeutic therapeutics therapy there these they thing this those thought through time tissue
tissues to too topic treat treatment trial type under undergoing until up upon us use used using
value variant versus via was water way we week weeks were what when where which while white who whom
whose why will with within without woman women word work world would year yes you your
"""

EVERYDAY_WORDS = frozenset(map(normalise, _WORDS.split()))
"""The words above, normalised by `normalise`."""
