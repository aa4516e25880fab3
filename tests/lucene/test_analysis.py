"""Texts of every language are analysed as Anserini analyses them."""

from collections import Counter

import pytest
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.lucene import LANGUAGES, analysis_settings, analyze, analyze_spans, java_class
from pyserini_compneg.support.errors import ArgumentError, JvmError

EVERY = "The Birds, flying! naïve Häuser Straße 12,000 über @b a_b Ｗｉｎ 中文"
TEXTS = {
    "ar": "الأطفال يركضون بسرعة في البيوت الكبيرة والكتب",
    "bn": "শিশুরা বড় বাড়িতে দ্রুত দৌড়াচ্ছিল বইগুলি",
    "da": "Børnene løb hurtigt gennem de store huse; undersøgelser",
    "de": "Die alten Häuser in den Städten wurden von großen Bauherren gebaut; Müßiggänger",
    "es": "Las niñas estudiaban rápidamente las canciones españolas; corazones",
    "fa": "کودکان به سرعت در خانه‌های بزرگ می‌دویدند",
    "fi": "Lapset juoksivat nopeasti suurten talojen läpi; yliopistossa",
    "fr": "L'homme qu'elle aimait n'était pas aujourd'hui les chevaux nationaux; œuvres",
    "ha": "Yara suna gudu a cikin manyan gidaje",
    "hi": "बच्चे बड़े घरों में तेजी से दौड़ रहे थे किताबें",
    "hu": "A gyerekek gyorsan futottak a nagy házak között; könyveket",
    "id": "Anak-anak berlari cepat melalui rumah-rumah besar; mempermainkan",
    "it": "Dell'amicizia nell'università le ragazze italiane studiavano velocemente; città",
    "ja": "関西国際空港から東京都の大学へ行きました。コンピューター　９５",
    "ko": "아이들은 큰 집에서 빨리 달렸다. 대학교에서 책을 읽었습니다.",
    "nl": "De kinderen liepen snel door de grote huizen; mogelijkheden",
    "no": "Barna løp raskt gjennom de store husene; undersøkelser",
    "pl": "Dzieci szybko biegły przez wielkie domy i ulice; książki",
    "pt": "As crianças brasileiras estudavam rapidamente; corações",
    "ru": "Дети быстро бежали через большие дома; университетах, ёлка",
    "so": "Carruurtu waxay si dhakhso ah u ordeen guryaha waaweyn",
    "sv": "Barnen sprang snabbt genom de stora husen; undersökningar",
    "sw": "Watoto walikimbia haraka katika nyumba kubwa",
    "te": "పిల్లలు పెద్ద ఇళ్లలో వేగంగా పరుగెత్తారు",
    "th": "เด็กๆวิ่งเร็วในบ้านหลังใหญ่และหนังสือ",
    "tr": "Çocuklar İstanbul'un büyük evlerinden hızla koştular",
    "uk": "Діти швидко бігли через великі будинки; університетах",
    "yo": "Àwọn ọmọ ń sáré kíákíá nínú àwọn ilé ńlá",
    "zh": "北京大学的学生们在图书馆看书。中華人民共和國 iPhone",
}


def knows_thai():
    return java_class("org.apache.lucene.analysis.th.ThaiTokenizer").DBBI_AVAILABLE


@pytest.mark.parametrize("language", LANGUAGES)
def test_terms_are_those_that_index_collection_writes(tmp_path, language):
    if language == "th" and not knows_thai():
        said = "this Java does not know where Thai words end; point JAVA_HOME at a Java with the module "
        assert refusal(analyze, ["text"], "th", error=JvmError) == f"{said}jdk.localedata, such as any JDK"
        return
    text = f"{TEXTS.get(language, '')} {EVERY}"
    write_jsonl(tmp_path / "texts" / "documents.jsonl", {"id": "d", "contents": text})
    options = f"-collection JsonCollection -input {tmp_path / 'texts'} -index {tmp_path / 'index'} -storeDocvectors"
    options += f" -generator DefaultLuceneDocumentGenerator -threads 1 -language {language}"
    java_class("io.anserini.index.IndexCollection").main(options.split())
    utils = java_class("io.anserini.index.IndexReaderUtils")
    reader = utils.getReader(str(tmp_path / "index"))
    written = utils.getDocumentVector(reader, "d")
    assert {term: int(written.get(term)) for term in written} == Counter(analyze([text], language)[0])
    reader.close()
    (plain, spans), whole = analyze_spans([text, f"😀 {text} 😀"], language), f"😀 {text} 😀"
    assert [span.term for span in plain] == analyze([text], language)[0]
    apart = [(term, whole[start:end]) for term, start, end in spans if term != "😀"]
    assert apart == [(term, text[start:end]) for term, start, end in plain]
    again = analyze([token for _, token in apart], language)
    assert [(term, token) for (term, token), terms in zip(apart, again, strict=True) if term not in terms] == []


def test_the_names_of_languages_are_anserinis():
    known = java_class("io.anserini.analysis.AnalyzerMap").analyzerMap
    without_analyzer = {"ha", "so", "sw", "yo"}  # IndexCollection has these names beside the map
    assert {*known, "en", *without_analyzer} == {*LANGUAGES}
    said = f"no analysis for the language 'xx'; known are {', '.join(LANGUAGES)}"
    assert refusal(analyze, ["text"], "xx", error=ArgumentError) == said
    assert LANGUAGES[:3] == ("ar", "bn", "da")


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("en", "The Houses, Häuser", ["hous", "häuser"]),
        ("de", "Die Häuser, Haus; große GROSSE", ["haus", "haus", "gross", "gross"]),
        ("fr", "L'œuvre des élèves", ["œuvr", "elev"]),
        ("es", "canción canciones", ["cancion", "cancion"]),
        ("zh", "图书馆", ["图书", "书馆"]),
        ("ja", "東京都の大学", ["東京", "都", "大学"]),
        ("sw", "Nyumba a∩b ¬x", ["Nyumba", "a%E2%88%A9b", "%C2%ACx"]),  # such words would read as pseudo-terms
    ],
)
def test_words_and_their_terms(language, text, terms):
    assert analyze([text], language) == [terms]


def test_the_analyses_of_two_languages_depend_on_lucene():
    lucene = java_class("org.apache.lucene.util.Version").LATEST.major
    korean = {9: ["대학", "학교", "교에", "에서"], 10: ["대", "학교"]}[lucene]
    persian = {9: ["كودكان"], 10: ["كودك"]}[lucene]
    assert [analyze(["대학교에서"], "ko"), analyze(["کودکان"], "fa")] == [[korean], [persian]]
    assert [analysis_settings(language) for language in ("en", "de", "ko", "fa")] == [
        {},
        {"language": "de"},
        {"language": "ko", "lucene": lucene},
        {"language": "fa", "lucene": lucene},
    ]
