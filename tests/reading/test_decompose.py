"""Texts and what they mean."""

import pytest

from pyserini_compneg.errors import DecompositionError
from pyserini_compneg.expression import Atom, format_expression
from pyserini_compneg.reading import decompose, or_undivided, undivided


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
        # other places
        ("The Rhine aside, which rivers flow through Germany?", "rivers flow through Germany NOT Rhine"),
        ("French wines, Bordeaux aside", "French wines NOT Bordeaux"),
        ("Leaving aside the pyramids, what did the ancient Egyptians build?", "ancient Egyptians build NOT pyramids"),
        ("leaving Bach aside, who were the great Baroque composers?", "great Baroque composers NOT Bach"),
        ("wars of the 20th century, with the two World Wars excluded", "wars of the 20th century NOT two World Wars"),
        ("Are there any mammals, platypus excepted, that lay eggs?", "mammals that lay eggs NOT platypus"),
        (
            "Paris, Rome and Madrid aside, which capitals have a metro?",
            "capitals have a metro NOT (Paris OR Rome OR Madrid)",
        ),
        ("Could you describe the Apollo programme but leave Apollo 13 out?", "Apollo programme NOT Apollo 13"),
        ("Which animals are monotremes, if we exclude the platypus?", "animals are monotremes NOT platypus"),
        ("Which countries, apart from the UK, drive on the left?", "countries drive on the left NOT UK"),
        ("Museums in Madrid [excluding the Prado] with free entry", "Museums in Madrid with free entry NOT Prado"),
        ("Bees — not honey", "Bees NOT honey"),
        ("Jaguar (not the car)", "Jaguar NOT car"),
        ("Which animals, with the exception of bats, use echolocation?", "animals use echolocation NOT bats"),
        ("Which states, except Ohio, Iowa and Utah, border it?", "states border it NOT (Ohio OR Iowa OR Utah)"),
        ("Summarise the Odyssey, leaving the Cyclops out.", "Summarise the Odyssey NOT Cyclops"),
        # descriptions of what is relevant
        (
            "Find papers on the ozone layer. Documents that only mention climate change are not relevant.",
            "papers on the ozone layer NOT climate change",
        ),
        (
            "Identify tropical storms. Reports of damage only should not be included.",
            "tropical storms NOT Reports of damage",
        ),
        ("Relevant: jaguars in the wild. Not relevant: Jaguar cars.", "Relevant: jaguars in the wild NOT Jaguar cars"),
        ("Articles on bees. No honey production.", "Articles on bees NOT honey production"),
        ("Documents about jaguars. Exclude the car maker.", "jaguars NOT car maker"),
        (
            "Find papers on whales. Documents that do not mention Norway are not relevant.",
            "Find papers on whales. Documents that do not mention Norway are not relevant.",
        ),
        # words
        ("every Beatles album save Abbey Road", "every Beatles album NOT Abbey Road"),
        ("All Nordic countries bar Denmark", "All Nordic countries NOT Denmark"),
        ("coffee growing countries outside Africa", "coffee growing countries NOT Africa"),
        ("villages devoid of electricity", "villages NOT electricity"),
        ("monotremes, excl. platypus", "monotremes NOT platypus"),
        ("Flemish painters w/o Rubens", "Flemish painters NOT Rubens"),
        ("1990s thrillers not starring Harrison Ford", "1990s thrillers NOT starring Harrison Ford"),
        ("Tell me about Henry VIII; omit his wives.", "Henry VIII NOT wives"),
        ("Recommend me some board games, but nothing with dice.", "board games NOT dice"),
        ("vegetarian recipes, no mushrooms, please", "vegetarian recipes NOT mushrooms"),
        ("I want to learn about Norse gods, not counting Thor.", "Norse gods NOT Thor"),
        # classes
        ("composers who were neither German nor Austrian", "composers NOT (German OR Austrian)"),
        ("Painters who never visited Italy", "Painters NOT visited Italy"),
        ("dinosaurs that did not eat meat", "dinosaurs NOT eat meat"),
        ("countries that don't have an army", "countries NOT army"),
        ("British composers who weren't born in England", "British composers NOT born in England"),
        ("Which novels did Orwell write that are not set in England?", "novels did Orwell write NOT set in England"),
        # typed carelessly
        ("islands of greece exept crete", "islands of greece NOT crete"),
        ("norse gods exluding thor", "norse gods NOT thor"),
        ("norse gods withut mentioning thor", "norse gods NOT thor"),
        ("list programming languages dont include java", "programming languages NOT java"),
        ("dinosaurs that didnt eat meat", "dinosaurs NOT eat meat"),
        ("capitals of europe except paris, rome and madrid", "capitals of europe NOT (paris OR rome OR madrid)"),
        ("capitals of europe but not paris or rome", "capitals of europe NOT (paris OR rome)"),
        ("i am looking for a thriller but i dont want stephen king", "thriller NOT stephen king"),
        ("Apart from spinach which vegetables are rich in iron?", "vegetables are rich in iron NOT spinach"),
        # alternatives
        ("books about cats or dogs", "books about cats OR books about dogs"),
        ("books by tolstoy or dostoevsky", "books by tolstoy OR books by dostoevsky"),
        ("movies shot in Rome or in Naples", "movies shot in Rome OR movies shot in Naples"),
        ("castles in Wales or palaces in Scotland", "castles in Wales OR palaces in Scotland"),
        ("Swiss, Austrian or German composers", "Swiss composers OR Austrian composers OR German composers"),
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
        "the man who wasn't there",
        "The Unbearable Lightness of Being",
        "those who do not learn from history",
        "who is the only pope not buried in Rome",
        "truth or dare rules",
        "Beyond Good and Evil",
        "can you live without a spleen",
        "what to do when you cannot sleep",
        "best ways to save for a house",
        "every bar in Berlin",
        "save the last dance",
        "hotels beside the sea",
        "the cost of ignoring climate change",
        "how to put money aside",
        "what sets humans apart",
        "Age is irrelevant.",
        "gluten-free bread",
        "A World Without Thieves",
        "laws on excerpts and exemptions",
        "Hamlet: not to be",
        "Vol. 3, No. 4, of the journal",
        "museums free of charge",
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
        (
            "not dogs",
            "'not dogs' says only what it does not ask for, after 'not'; say what is wanted too, or search the text as "
            "it is",
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


def test_a_text_that_another_reader_refuses_is_left_whole():
    told = []
    read = or_undivided(decompose, told.append)
    assert read("not dogs") == undivided("not dogs")
    assert read("cats not dogs") == decompose("cats not dogs")
    assert ["dogs" in str(error) for error in told] == [True]
