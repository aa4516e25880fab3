"""What tagged words mean. Requests are written as in the files that readers are trained on."""

import pytest

from pyserini_compneg.expression import format_expression, leaves
from pyserini_compneg.lab.training.tagged_requests import parse_request
from pyserini_compneg.reading.assembly import assembled
from pyserini_compneg.reading.decomposition import tagged
from pyserini_compneg.reading.words import words_of


def meaning(line):
    request = parse_request(line, "line")
    words = words_of(request.text)
    return assembled(request.text, words, request.tags(words), 0.9)


@pytest.mark.parametrize(
    "line, expression",
    [
        ("[W spy films] but not [X comedies]", "spy films NOT comedies"),
        ("[W cars] without [X diesel] [OR or] [X gas]", "cars NOT (diesel OR gas)"),
        ("[W French] [OR or] [W Italian] [S comedies]", "French comedies OR Italian comedies"),
        ("[S inns] with [W a pool] [AND and] [W parking], no [X hostels]", "inns a pool AND inns parking NOT hostels"),
        ("[S films starring] [W Depp] [OR or] [W films starring Penn]", "films starring Depp OR films starring Penn"),
        ("[W a] [OR or] [W b] [AND and] [W c] [OR or] [W d]", "(a OR b) AND (c OR d)"),
        ("[W vans] other than [X Ford] [W with six seats]", "vans with six seats NOT Ford"),
        ("[W jazz] (not [X smooth jazz]) [OR or] [W blues]", "jazz NOT smooth jazz OR blues"),
        ("[W jazz] (not [X smooth jazz]), [W live]", "jazz live NOT smooth jazz"),
        ("[W jazz] (not [X smooth jazz] [OR or] [X acid jazz]), [W live]", "jazz live NOT (smooth jazz OR acid jazz)"),
        ("[W vans] other than [X Ford] [OR or] [X Fiat] [W with six seats]", "vans with six seats NOT (Ford OR Fiat)"),
        ('[W (500) Days of Summer] not [X the film "Alien"]', r'"(500) Days of Summer" NOT "the film \"Alien\""'),
        ('[W tablets 5"] but not [X 7"]', "tablets 5 NOT 7"),
        ("[W bands like Portishead (band)] not [X (Air)]", '"bands like Portishead (band)" NOT Air'),
        ("[W tea] not [X green tea], not [X green tea]", "tea NOT green tea"),
        ("[W C++] but not [X C#]", "C++ NOT C#"),
        ('[W songs] without [X "let it be"]', "songs NOT let it be"),
        ("Please: [W how to cook rice]?", "Please: how to cook rice?"),
        ("[W Cats] but not [X cats]", "Cats but not cats"),
        ("[W cats] but not [X dogs\u202e]", "cats NOT dogs"),
        ("[W cats] but not [X ...]", "cats but not ..."),
    ],
)
def test_tags_become_an_expression(line, expression):
    reading = meaning(line)
    assert format_expression(reading.expression) == expression
    assert list(dict.fromkeys(atom.text for atom in leaves(reading.expression))) == [p.text for p in reading.parts]


def test_parts_know_where_their_words_stand():
    reading = meaning("[S flats] in [W Leeds] [OR or] [W York], not [X basements]")
    assert [(part.text, part.spans, part.excluded) for part in reading.parts] == [
        ("flats Leeds", ((0, 5), (9, 14)), False),
        ("flats York", ((0, 5), (18, 22)), False),
        ("basements", ((28, 37),), True),
    ]
    assert tagged(reading) == "[S flats] in [W Leeds] or [W York], not [X basements]"


@pytest.mark.parametrize(
    ("line", "excluded"),
    [
        ("[W cheese], nothing [X from Italy]", "Italy"),
        ("[W papers on war], not [X about tanks]", "tanks"),
        ("[W cheese], but not [X Greek ones]", "Greek"),
        ("[W films] but not [X From Here to Eternity]", "From Here to Eternity"),
        ("[W words], not [X from]", "from"),
    ],
)
def test_words_that_link_an_exclusion_are_no_part_of_it(line, excluded):
    assert [part.text for part in meaning(line).parts if part.excluded] == [excluded]
