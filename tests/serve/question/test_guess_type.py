from __future__ import annotations

from serve.question.guess_type import guess_type


def test_guess_type_by_first_words() -> None:
    kinds = {
        "Is metformin safe in pregnancy?": "yesno",
        "does aspirin prevent stroke?": "yesno",
        "  Have  vaccines been tested?": "yesno",
        "Isn't metformin safe in pregnancy?": "yesno",
        "In patients with renal failure, is metformin safe?": "yesno",
        "Metformin is a biguanide, yes or no?": "yesno",
        "List symptoms of the IFAP syndrome.": "list",
        "Please list the causes of anaemia.": "list",
        "What are the symptoms of measles?": "list",
        "Which splicing factors have been found in hearts?": "list",
        "Which gene is mutated in cystic fibrosis?": "factoid",
        "What is the inheritance pattern of haemophilia?": "factoid",
        "Who discovered penicillin?": "factoid",
        "How many chromosomes do humans have?": "factoid",
        "When was Keytruda approved by the FDA?": "factoid",
        "Which disease does it cause?": "factoid",
        "What is achalasia?": "summary",
        "What is the mechanism of action of metformin?": "summary",
        "How does RBM24 control the QT interval?": "summary",
        "Why do statins cause myopathy?": "summary",
        "Describe the role of p53.": "summary",
        "": "summary",
    }
    assert {body: guess_type(body) for body in kinds} == kinds
