"""Block maxima beside a reordered index: a search with them finds the same bits as one without, or without pruning."""

import json
import shutil

import numpy as np
import pytest
from impact_indexes import add_documents, delete_documents, json_lines, pairs, write_index
from maxima_files import FILE, FOOTER, VERSION, earlier_file, parts, with_checksum, with_stock_lucene
from refusals import refusal

from pyserini_compneg.compose import Damped, Excluding, Linear, Max, Product, Sum
from pyserini_compneg.expression import Filter
from pyserini_compneg.index import verify_index
from pyserini_compneg.lucene import ImpactReader, ImpactWriter
from pyserini_compneg.support.errors import IndexReadError, OutputError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_parts")]

GROUPS, SIZE, OWN, COMMON = 8, 1500, 12, 8  # half of the groups' terms are frequent enough for the file
COUNT = GROUPS * SIZE
HITS = 1, 3, COUNT // 1024  # with more the block maxima are not used


def grouped(seed=1, common=COMMON):
    """Documents of groups with terms of their own and some for all; small impacts tie, and one term has large ones."""
    rng = np.random.default_rng(seed)
    for number in range(COUNT):
        group = number % GROUPS
        own = rng.choice(OWN, 5, replace=False)
        impacts = rng.integers(1, 60 if group % 2 else 16, 5)  # terms whose impacts are of 4 bits must be more frequent
        vector = {f"g{group}t{t}": int(impact) for t, impact in zip(own, impacts, strict=True)}
        vector |= {f"c{t}": int(rng.integers(1, 9)) for t in rng.choice(common, 3, replace=False)}
        if rng.random() < 0.2:
            vector["wide"] = int(rng.integers(1, 70_000))
        yield f"d{rng.integers(10**6)}-{number}", vector


def vector(rng, groups, negative=0.0):
    terms = [f"g{g}t{t}" for g in groups for t in rng.choice(OWN, 4, replace=False)]
    terms += [f"c{t}" for t in rng.choice(COMMON, 3, replace=False)] + ["nowhere", "wide"][: rng.integers(0, 3)]
    weights = rng.integers(1, 4, len(terms)) * (0.001 if "wide" in terms else 1.0)
    signs = np.where(rng.random(len(terms)) < negative, -1, 1)
    return dict(zip(terms, (weights * signs).tolist(), strict=True))


def nodes(count=3):
    rng = np.random.default_rng(2)
    for _ in range(count):
        a, b = rng.choice(GROUPS, 2, replace=False)
        one, other = vector(rng, [a]), vector(rng, [a, b])
        product = Product((one, other))
        beyond = *({"wide": 1e18},) * 15, {"nowhere": 1e18}  # ∞ · 0
        yield from (
            Linear(one),
            Linear(vector(rng, [a, b], negative=0.4)),
            product,
            Product((one, other), 1.0, root=2, weight=0.3),
            Sum((product, Linear(one), Linear({"c0": -2.0}))),
            Max((Linear(one), Linear(other), product)),
            Max((Linear(vector(rng, [a], negative=0.4)), Linear(vector(rng, [b], negative=0.4)), Linear(one))),
            Max((Damped(Linear(one), (Linear(vector(rng, [b])),), (90.0,), 0.75, 10.0), Max((Linear(other), product)))),
            Max((Excluding(Linear(one), (Linear({"c1": 1.0}),), (3.0,)), Linear(vector(rng, [b])))),
            Max(tuple(Linear(vector(rng, [g])) for g in rng.integers(0, GROUPS, 17))),
            Max((Linear(one), Product(beyond, 1.0))),
            Max((Linear(one), Sum((Linear(other), Product(beyond, 1.0, weight=-1.0))))),
            Sum((Linear(other), Product((one, other), weight=-0.5))),
            Damped(Linear(other), (Linear(vector(rng, [b])),), (90.0,), 0.75, 10.0),
            Excluding(Linear(other), (Linear({"c1": 1.0}),), (3.0,)),
            Excluding(Linear(other), (Filter({"kind": ["k0"]}),), (0.0,)),
            Excluding(Linear(other), required=(Linear({"c1": 1.0}), Linear(vector(rng, [b])))),
            Linear({f"c{t}": 1.0 for t in range(COMMON)}),
        )


@pytest.fixture(scope="module")
def documents():
    return dict(grouped())


@pytest.fixture(scope="module")
def reordered(tmp_path_factory, documents):
    folder = tmp_path_factory.mktemp("reordered") / "index"
    folder.mkdir()
    sources = [json.dumps({"kind": f"k{number % 3}"}) for number in range(COUNT)]
    with ImpactWriter(folder, filter_fields=["kind"]) as writer:
        add_documents(writer, documents, "\n".join(sources).encode())
        writer.optimize(reorder=True)
        writer.commit()
    return folder


@pytest.fixture
def index(tmp_path, reordered):
    return shutil.copytree(reordered, tmp_path / "copy")


def check(index, used=True, filters=(), count=1):
    """The same bits with the file, without it, and without pruning, for ``count`` queries of each form."""
    plain = shutil.copytree(index, index.with_name("plain"), ignore=shutil.ignore_patterns(FILE))
    asked = list(nodes(count))
    with ImpactReader(index) as reader, ImpactReader(plain) as other:
        filters = list(filters) * len(asked)
        whole = other.search(asked, other.document_count, filters=filters)
        counted = reader.matches(asked, filters, threads=3)
        assert [one.documents for one in counted] == [len(one.docids) for one in whole]
        for hits in HITS:
            for place in range(0, len(asked), 4):  # by several threads
                [parted] = reader.search([asked[place]], hits, 3, filters[:1])
                assert pairs(parted) == pairs(whole[place])[:hits], asked[place]
            for place in (0, len(whole[hits % 4].docids) // 3):  # pages behind a hit, one of them with ties
                marks = [pairs(one)[min(place, len(one.docids) - 1)] if one.docids else None for one in whole]
                behind = reader.search(asked, hits, 1 + place % 2, filters, after=marks)
                for mark, ranking, complete in zip(marks, behind, whole, strict=True):
                    first = pairs(complete).index(mark) + 1 if mark else 0
                    assert pairs(ranking) == pairs(complete)[first : first + hits]
            before = reader.work_done().postings_read, other.work_done().postings_read
            found = reader.search(asked, hits, filters=filters)
            assert found == other.search(asked, hits, filters=filters)
            for node, ranking, complete in zip(asked, found, whole, strict=True):
                assert pairs(ranking) == pairs(complete)[:hits], node
            work = reader.work_done().postings_read - before[0], other.work_done().postings_read - before[1]
            if used is not None:
                assert (work[0] != work[1]) == used  # not always less: of dense terms whole windows are read
    shutil.rmtree(plain)


def test_the_same_bits_with_and_without_the_file(index):
    assert (index / FILE).stat().st_size < 45 * COUNT
    assert not (index / f"{FILE}.tmp").exists()
    check(index, count=3)


def test_fewer_postings_are_read_with_the_file(tmp_path):
    """Where no term is so frequent that the impacts of all documents are kept."""
    (tmp_path / "index").mkdir()
    with ImpactWriter(tmp_path / "index") as writer:
        add_documents(writer, dict(grouped(common=60)))
        writer.optimize(reorder=True)
        writer.commit()
    plain = shutil.copytree(tmp_path / "index", tmp_path / "plain", ignore=shutil.ignore_patterns(FILE))
    asked = [Linear(vector(np.random.default_rng(seed), [seed % GROUPS])) for seed in range(20)]
    for hits in HITS:
        work = []
        for folder in (tmp_path / "index", plain):
            with ImpactReader(folder) as reader:
                reader.search(asked, hits)
                work.append(reader.work_done().postings_read)
        assert work[0] < work[1] / 2


@pytest.mark.parametrize("hits", [1, COUNT])
def test_postings_of_blocks_have_any_impact(tmp_path, hits):
    """In half a byte, in one, in two, and in none: a term with larger impacts has Lucene's postings only."""
    rng = np.random.default_rng(6)
    largest = {"same": 1, "half": 15, "more": 16, "one": 255, "two": 256, "most": 65_000, "beyond": 80_000}
    share = {"same": 0.99, "half": 0.97} | dict.fromkeys(list(largest)[2:], 0.7)  # 0.97: some blocks are full
    documents = {
        f"d{i}": {term: int(rng.integers(1, most + 1)) for term, most in largest.items() if rng.random() < share[term]}
        or {"z": 1}
        for i in range(3_000)
    }
    for i, (term, most) in enumerate(largest.items()):
        documents[f"d{i}"][term] = most
    with ImpactWriter(tmp_path) as writer:
        add_documents(writer, documents)
        writer.optimize(reorder=True)
        writer.commit()
    trees = [Linear({term: 1.0}) for term in largest] + [
        Linear({"one": 70.0, "two": -3.0, "most": 0.5}),
        Product(({"one": 1.0, "beyond": 0.1}, {"two": 2.0, "most": 0.01})),
        Product(({"half": 1.0, "same": 0.1}, {"one": 0.5, "half": 0.7}), 1.0),
    ]
    found = []
    for _ in range(2):
        with ImpactReader(tmp_path) as reader:
            found.append([pairs(one) for one in reader.search(trees, min(hits, 3_000))])
        (tmp_path / FILE).unlink(missing_ok=True)
    assert found[0] == found[1]


def test_the_terms_of_the_file(tmp_path):
    """Those of half bytes that one in 8 documents has, and others with a posting for each block, one in 32."""
    count = 1_600
    terms = {  # how many documents have a term, and its largest impact
        "every": (count, 1),
        "half": (count // 8, 15),
        "rarer_half": (count // 8 - 1, 15),
        "whole": (count // 32, 16),
        "rarer_whole": (count // 32 - 1, 16),
    }
    documents = {
        f"d{number}": {term: most for term, (own, most) in terms.items() if number < own} for number in range(count)
    }
    with ImpactWriter(tmp_path) as writer:
        add_documents(writer, documents)
        writer.optimize(reorder=True)
        writer.commit()
    assert parts((tmp_path / FILE).read_bytes(), 0)[0] == ["every", "half", "whole"]
    assert verify_index(tmp_path) == count


@pytest.mark.parametrize("seed", range(4))
def test_any_impacts_are_as_without_the_file(tmp_path, seed):
    """Terms of any share of the documents and any impacts, most of them small; some blocks are full."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2_000, 5_000))
    vectors = [{"z": 1} for _ in range(count)]
    terms = [f"t{number}" for number in range(30)]
    for term in terms:
        least, most = sorted(rng.choice([1, 2, 7, 15, 16, 255, 256, 70_000], 2).tolist())
        chosen = rng.random(count) < rng.choice([0.03, 0.09, 0.2, 0.5, 0.98, 1.0])
        if rng.random() < 0.5:  # in neighbours only
            chosen &= np.arange(count) // 700 % 2 == 0
        for number in np.flatnonzero(chosen):
            vectors[number][term] = int(rng.integers(least, most + 1))
    with ImpactWriter(tmp_path) as writer:
        add_documents(writer, {f"d{number}": vector for number, vector in enumerate(vectors)})
        writer.optimize(reorder=True)
        writer.commit()
    assert verify_index(tmp_path) == count

    def drawn(least):
        return {term: float(rng.integers(least, 9)) for term in rng.choice(terms, 6, replace=False)}

    trees = [Linear(drawn(-4)) for _ in range(10)]
    trees += [Product((drawn(1), drawn(1)), float(rng.choice([0.5, 1.0]))) for _ in range(10)]
    trees += [Max((Linear(drawn(-2)), Product((drawn(1), drawn(1))))) for _ in range(5)]
    found = []
    for _ in range(2):
        with ImpactReader(tmp_path) as reader:
            found.append([[pairs(one) for one in reader.search(trees, hits)] for hits in (1, 2, count)])
        (tmp_path / FILE).unlink(missing_ok=True)
    assert found[0] == found[1]


def test_alternatives_are_read_where_they_are_competitive(index):
    """Each block has common terms of both, but a block of one's group need not be read for the other."""

    def alternative(group, common):
        return Linear({f"g{group}t{t}": 9.0 for t in range(OWN)} | {f"c{t}": 60.0 for t in common})

    one, other = alternative(1, range(4)), alternative(2, range(4, COMMON))

    def postings_read(node):
        before = reader.work_done().postings_read
        reader.search([node], 3)
        return reader.work_done().postings_read - before

    with ImpactReader(index) as reader:
        undivided = postings_read(Sum((Max((one, other)),)))
        assert postings_read(Max((one, other))) < 0.9 * undivided


def test_filters(index):
    check(index, filters=[Filter({"kind": ["k0", "k1", "k2"]})])
    check(index, used=None, filters=[Filter({"kind": ["k1"]})])  # with the file for some numbers of hits only


def test_scores_that_need_not_be_found(index):
    """As a search of other shards gives them: what is at least as good is found, as without the file."""
    with ImpactReader(index) as reader:
        whole = reader.search(list(nodes()), COUNT)
        for node, complete in zip(nodes(), whole, strict=True):
            for rank in (0, 5):
                least = complete.scores[rank]
                (found,) = reader.search([node], HITS[-1], thresholds=[least])
                wanted = [hit for hit in pairs(complete)[: HITS[-1]] if hit[1] >= least]
                assert pairs(found)[: len(wanted)] == wanted


def test_deletions_and_further_segments(tmp_path, index, documents):
    choice = np.random.default_rng(3)
    delete_documents(index, [docid for docid in documents if choice.random() < 0.1])
    check(index)
    more = {f"more-{docid}": vector for docid, vector in list(grouped(4))[:3000]}
    other = write_index(tmp_path / "other", more, fields={docid: {"kind": "k0"} for docid in more})
    with_stock_lucene(index, lambda writer, opened: writer.addIndexes(opened(other)))
    check(index)


def test_a_file_of_a_segment_that_is_gone(index, documents):
    delete_documents(index, list(documents)[:5])
    with_stock_lucene(index, lambda writer, _: writer.forceMerge(1))
    assert (index / FILE).exists()
    check(index, used=False)
    assert verify_index(index) == COUNT - 5


def test_damage(index):
    whole = (index / FILE).read_bytes()
    assert verify_index(index) == COUNT
    for damaged in (b"", whole[:10], whole[:-1], b"x" + whole[1:], whole[:-16] + bytes(16), whole + b"x"):
        (index / FILE).write_bytes(damaged)
        text = refusal(ImpactReader, index, error=IndexReadError)
        assert text.startswith(f"{index}: cannot be opened: ")
        assert text.endswith(f"; the file {FILE} may be deleted")
    field = whole.index(b"\x08contents")  # its length would be negative, or more than there is
    for length in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07"):
        (index / FILE).write_bytes(whole[:field] + length + whole[field + 5 :])
        assert FILE in refusal(ImpactReader, index, error=IndexReadError)
    middle = len(whole) // 2
    (index / FILE).write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    text = refusal(verify_index, index, error=IndexReadError)
    assert text.startswith(f"{index}: is damaged, rebuild it: checksum failed")


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_earlier_release(index, version):
    """The bytes that it wrote are read as they were: version 1 has no postings, version 2 none of half a byte."""
    whole = (index / FILE).read_bytes()
    assert whole[VERSION : VERSION + 4] == (3).to_bytes(4, "big")
    earlier = earlier_file(index, version, COUNT)
    assert len(parts(earlier, COUNT)[0]) > len(parts(whole, COUNT)[0])
    (index / FILE).write_bytes(earlier)
    check(index)
    assert verify_index(index) == COUNT


@pytest.mark.parametrize(
    ("part", "said"), [("impact", "has other impacts of"), ("half size", "blocks of "), ("size", "blocks of ")]
)
def test_other_postings_are_noticed(index, part, said):
    whole = bytearray((index / FILE).read_bytes())
    terms, rows, begin, end = parts(whole, COUNT)
    assert (terms[0], whole[rows]) == ("c0", 255)  # its row is of halves
    assert terms[-1] == "wide"  # whose impacts are too large for postings
    # The first block begins with the bits of its documents. The sizes of the last term with postings come last.
    place, bit = {"impact": (begin + 4, 1), "half size": (rows + 1, 16), "size": (end - 1, 1)}[part]
    whole[place] ^= bit
    (index / FILE).write_bytes(with_checksum(bytes(whole[:-8])))
    assert said in refusal(verify_index, index, error=IndexReadError)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_rows_and_places_are_refused(index, seed):
    """A byte of a row, or of the place of postings, is another, and the checksum is right."""
    said = f"{index}: is damaged, rebuild it: ", f"{index}: cannot be opened: "
    rng = np.random.default_rng(seed)
    whole = bytearray((index / FILE).read_bytes())
    _, rows, begin, end = parts(whole, COUNT)
    whole[rng.integers(*[(rows, begin), (end, len(whole) - FOOTER)][seed % 2])] ^= 1 << int(rng.integers(8))
    (index / FILE).write_bytes(with_checksum(bytes(whole[:-8])))
    assert refusal(verify_index, index, error=IndexReadError).startswith(said)


def test_impacts_of_another_index(tmp_path, index, documents):
    """A file with right checksums whose impacts are not those of the segment."""
    whole = (index / FILE).read_bytes()
    other = {docid: {term: impact + 1 for term, impact in vector.items()} for docid, vector in documents.items()}
    (tmp_path / "other").mkdir()
    with ImpactWriter(tmp_path / "other") as writer:
        add_documents(writer, other)
        writer.optimize(reorder=True)
        writer.commit()
    assert (tmp_path / "other" / FILE).read_bytes() != whole
    shutil.copy(tmp_path / "other" / FILE, index)
    check(index, used=False)


def test_a_build_goes_on_without_the_file_of_the_last(index):
    (index / f"{FILE}.tmp").write_text("killed")
    with ImpactWriter(index, filter_fields=["kind"], existing="resume") as writer:
        assert not (index / FILE).exists()
        assert not (index / f"{FILE}.tmp").exists()
        writer.optimize(reorder=True)
        writer.commit()
    check(index)


def test_a_writer_that_is_refused_leaves_the_file(index):
    with ImpactWriter(index, filter_fields=["kind"], existing="resume") as writer:
        writer.optimize(reorder=True)
        writer.commit()
        there = (index / FILE).read_bytes()
        with pytest.raises(OutputError):
            ImpactWriter(index, filter_fields=["kind"], existing="resume")
        assert (index / FILE).read_bytes() == there


def test_a_filter_that_allows_few_of_many_documents(tmp_path):
    """So few that documents are looked up one by one, and enough for each hit that block maxima are used."""
    rng = np.random.default_rng(5)
    documents = {
        f"d{i}": {f"t{t}": int(rng.integers(1, 99)) for t in rng.choice(9, 3, replace=False)} for i in range(40_000)
    }
    kinds = json_lines({"kind": "few" if number % 37 == 0 else "many"} for number in range(len(documents)))
    with ImpactWriter(tmp_path, filter_fields=["kind"]) as writer:
        add_documents(writer, documents, sources=kinds)
        writer.optimize(reorder=True)
        writer.commit()
    weights = [{f"t{t}": float(rng.integers(-1, 4)) for t in rng.choice(9, 4, replace=False)} for _ in range(12)]
    trees = [Linear(one) for one in weights] + [
        Product(({f"t{i}": 3.0, "t8": 1.0}, {"t0": 2.0, "t1": 1.0})) for i in range(4)
    ]
    found = []
    for _ in range(2):
        with ImpactReader(tmp_path) as reader:
            found.append(reader.search(trees, 1, filters=[Filter({"kind": "few"})] * len(trees)))
        (tmp_path / FILE).unlink(missing_ok=True)
    assert [pairs(one) for one in found[0]] == [pairs(one) for one in found[1]]
