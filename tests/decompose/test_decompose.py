"""Texts and what they mean."""

import pytest

from pyserini_compneg.decompose import decompose
from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, format_expression


def read(text):
    return format_expression(decompose(text).expression)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        # where the exclusion stands
        ("Other than Ran, what films did Kurosawa make?", "films did Kurosawa make NOT Ran"),
        ("What films did Kurosawa make, apart from Ran?", "films did Kurosawa make NOT Ran"),
        ("Which film besides Ran won a prize in Cannes?", "film won a prize in Cannes NOT Ran"),
        ("Who, except for Ed Stone, has seen it?", "seen it NOT Ed Stone"),
        ("In which town, aside from Bergen, does the team play?", "town does the team play NOT Bergen"),
        ("Compare the rivers of Asia (excluding the Ganges) with those of Europe.", None),
        ("tea without sugar", "tea NOT sugar"),
        ("a hotel in Rome with no lift", "hotel in Rome NOT lift"),
        ("songs by Queen rather than covers", "songs by Queen NOT covers"),
        ("phones like the Nokia 3310, unlike smartphones", "phones like the Nokia 3310 NOT smartphones"),
        ("Nordic countries without Denmark. What do they export?", "Nordic countries they export NOT Denmark"),
        # what is said and what is meant
        ("Can you tell me about Oslo without mentioning any details about its harbour?", "Oslo NOT harbour"),
        ("Who is Ada Byron, but do not mention Babbage?", "Ada Byron NOT Babbage"),
        ("Tell me about Rome. Please exclude any information about the Vatican.", "Rome NOT Vatican"),
        ("Describe the plot of Emma, avoiding any references to Mr. Elton.", None),
        ("List plays by Ibsen that are unrelated to Oslo", "plays by Ibsen NOT Oslo"),
        # several
        ("all planets except Mars, Venus and Mercury", "all planets NOT (Mars OR Venus OR Mercury)"),
        ("towns in Texas except Austin, Texas", "towns in Texas NOT Austin, Texas"),
        ("the work of Bach (excluding masses) and Handel (excluding operas)", None),
        # adjectives
        ("non-European monarchs", "monarchs NOT European"),
        ("a non Islamic history of Persia", None),
        ("non-profit organisations", "non-profit organisations"),
        # joined
        ("birds that are also pets but not parrots", "birds AND pets NOT parrots"),
        ("birds that are also both pets and singers", "birds AND pets AND singers"),
        ("films that are both funny and sad", "films AND funny AND sad"),
        ("birds of Chile or birds of Peru", "birds of Chile OR birds of Peru"),
        ("French or Italian comedies", "French comedies OR Italian comedies"),
        ("1970s, 1980s or 1990s horror films", None),
        ("films set in France or Italy", "films set in France OR films set in Italy"),
        ("either cats or dogs", "cats OR dogs"),
        ("films by Ann Lee and Bob Ray", "films by Ann Lee and Bob Ray"),
    ],
)
def test_readings(text, expression):
    if expression is not None:
        assert read(text) == expression
    else:
        assert decompose(text).reasons


@pytest.mark.parametrize(
    "text",
    [
        "No Country for Old Men",
        "Who wrote No Country for Old Men?",
        "To Be or Not to Be",
        "Doctors Without Borders",
        "history of doctors without borders",
        "What are the risks of not including women in trials?",
        "Who founded Doctors Without Borders?",
        "Without Remorse",
        "Girl, Interrupted",
        'the song "Not Without You"',
        "lyrics of 'Never Without Love'",
        "Who did not vote?",
        "Which cities were not destroyed?",
        "What can be done without surgery?",
        "What do fossils not have that living ones have?",
        "Which band is older, Rush or Yes?",
        "Is it hot or cold?",
        "Not only cats but also dogs sleep a lot.",
        "species that are no longer found in Europe",
        "Mice without the gene are resistant to the virus.",
        "Aspirin has no effect on growth.",
        "The drug is safe except in children.",
        "Is non-small cell lung cancer curable?",
        "whether or not it rains",
        "sooner or later",
        "rock and roll",
    ],
)
def test_what_stays_whole(text):
    result = decompose(text)
    assert (result.expression, result.reasons, result.confidence) == (Atom(text), (), 1.0)


def test_the_parts_say_where_their_words_stand():
    text = "Can you list French or Italian comedies, but not “La Strada”?"
    result = decompose(text)
    assert [(part.text, part.spans, part.excluded) for part in result.parts] == [
        ("French comedies", ((13, 19), (31, 39)), False),
        ("Italian comedies", ((23, 39),), False),
        ("“La Strada”", ((49, 60),), True),
    ]
    assert [(reason.kind, reason.cue, reason.span) for reason in result.reasons] == [
        ("union", "or", (20, 22)),
        ("contrast", "but not", (41, 48)),
    ]
    assert result.confidence == 0.8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text is blank, got ''; give words to search for"),
        ("  \n", "the text is blank, got '  \\n'; give words to search for"),
        (
            "not dogs",
            "'not dogs' says only what it does not ask for, after 'not'; say what is wanted too, or search the text as "
            "it is",
        ),
        (
            "excluding cats",
            "'excluding cats' says only what it does not ask for, after 'excluding'; say what is wanted too, or search "
            "the text as it is",
        ),
        (
            "please do not mention " + "x" * 99,
            f"'please do not mention {'x' * 34}... says only what it does not ask for, after 'please do not mention'; "
            "say what is wanted too, or search the text as it is",
        ),
    ],
)
def test_what_asks_for_nothing_is_refused(text, message):
    with pytest.raises(DecompositionError) as error:
        decompose(text)
    assert str(error.value) == message


@pytest.mark.parametrize("text", ["?", "...", '"', "(", "¬∩", "\x00", "\ud800", "—"])
def test_signs_are_one_atom(text):
    assert decompose(text).expression.text == text


@pytest.mark.parametrize(
    "text",
    [
        'films "with an open quote except comedies',
        "films ‹with› „odd“ «quotes» except ’comedies‘",
        "films (with an open bracket except comedies",
        "films) with brackets (the wrong way) round) except ((comedies",
        "films except except comedies",
        "FILMS EXCEPT COMEDIES",
    ],
)
def test_unbalanced_signs_do_not_hide_the_cue(text):
    result = decompose(text)
    assert [part.text.lower().strip("’‘(") for part in result.parts if part.excluded] == ["comedies"]
