"""Turns expressions into queries that an index can run: composes, resolves, adapts to the index, rounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pyserini_compneg.compose.adapting import FACTORED, adapted
from pyserini_compneg.compose.atom_vectors import QueryEncoder, atom_vectors, warn_of_unknown_atoms
from pyserini_compneg.compose.composer import Composer
from pyserini_compneg.compose.intersection import cpt_pairs
from pyserini_compneg.compose.json_form import query_line
from pyserini_compneg.compose.operators import DEFAULT_OPERATORS, Operators
from pyserini_compneg.compose.quantisation import WEIGHT_SCALE, quantised, with_rounded_pairs
from pyserini_compneg.compose.resolve import TopScores, resolved
from pyserini_compneg.compose.rewrite import check_exclusions, verbalised, without_differences, without_exclusions
from pyserini_compneg.compose.scoring import All, Linear, Product, ScoringNode
from pyserini_compneg.compose.trees import is_empty, kept_terms, nodes, positive_weights
from pyserini_compneg.compose.words import EncodedOnce, atom_words, worded_atoms
from pyserini_compneg.expression import Atom, Expression, Union, atoms, format_expression, leaves, parse
from pyserini_compneg.reading import READINGS, Decomposition, read_texts
from pyserini_compneg.support.arguments import checked_list
from pyserini_compneg.support.errors import ArgumentError, EncodingError, QueryError
from pyserini_compneg.support.progress import gathered_warnings, warn_of
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import PAIR_SCALE, is_pair

_ALL = "*"
_ALL_ATOMS = Atom(_ALL), Atom(f"({_ALL})")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as it is understood: an expression, or a composed query. The expression ``*`` becomes the query for all.

    Attributes:
        expression: The expression; None for a composed query.
        reading: The reading of a plain text that gave the expression; None if the text was parsed, or was no text.
        composed: The composed query; None for an expression.

    Raises:
        ArgumentError: There is neither an expression nor a composed query, or there are both.
    """

    expression: Expression | None = None
    reading: Decomposition | None = None
    composed: ScoringNode | None = None

    def __post_init__(self) -> None:
        kinds = ((self.expression, Expression), (self.reading, Decomposition), (self.composed, ScoringNode))
        of_kind = all(value is None or isinstance(value, kind) for value, kind in kinds)
        if not of_kind or (self.expression is None) == (self.composed is None):
            values = ", ".join(shown(value) for value, _ in kinds)
            raise ArgumentError(f"a ParsedQuery has either an expression or a composed query, got {values}")
        if self.expression in _ALL_ATOMS and self.reading is None:
            object.__setattr__(self, "expression", None)
            object.__setattr__(self, "composed", All())

    @property
    def text(self) -> str:
        """The query as text for people."""
        if self.expression is not None:
            return format_expression(self.expression)
        assert self.composed is not None  # a query has either
        if isinstance(self.composed, All):
            return _ALL
        return query_line(self.composed)

    def changed(self, change: Callable[[Expression], Expression]) -> ParsedQuery:
        """The query with a changed expression. A composed query is returned unchanged."""
        if self.expression is None:
            return self
        expression = change(self.expression)
        return ParsedQuery(expression, self.reading and replace(self.reading, expression=expression))


Query: TypeAlias = str | Expression | Decomposition | ScoringNode | ParsedQuery
"""An expression as text or as a tree, the reading of a plain text, a composed query, or one of them as understood."""


def compose_query(
    query: Query,
    encoder: QueryEncoder | None,
    operators: Operators = DEFAULT_OPERATORS,
    *,
    cpt: str = FACTORED,
    signed: bool = False,
    weight_scale: float = WEIGHT_SCALE,
    top_scores: TopScores | None = None,
    pair_scale: int = PAIR_SCALE,
) -> ScoringNode:
    """Turns an expression into a composed query, whose weights are whole numbers, but for pairs.

    Args:
        query: The expression. A scoring tree is returned unchanged.
        encoder: Gives the vectors of texts. A scoring tree needs no encoder.
        operators: The operators of union, intersection and difference.
        cpt: ``factored``, for any index, or ``materialised``, for an index with pairs.
        signed: Whether the index keeps negative weights of documents.
        weight_scale: Weights are round(w · weight_scale); those of pairs are then computed from rounded ones.
        top_scores: Gives the best scores of queries in the index that will be searched; ``damped`` needs it.
        pair_scale: For ``materialised``: what the index multiplies the impacts of pairs by, as its manifest says;
            1 for an index of an earlier release.

    Returns:
        The scoring tree. It ``is_empty`` if the encoder knows no term of the query's positive part.

    Raises:
        ArgumentError: The value is not a query.
        EncodingError: A text cannot be encoded, or a vector has a wrong weight or a reserved term.
        QueryError: The expression has a fault, a setting is wrong, weights are out of range, or a conjunction cannot be
            materialised.
    """
    return compose_queries(
        [query],
        encoder,
        operators,
        cpt=cpt,
        signed=signed,
        weight_scale=weight_scale,
        top_scores=top_scores,
        pair_scale=pair_scale,
    )[0]


def compose_queries(
    queries: Sequence[Query],
    encoder: QueryEncoder | None,
    operators: Operators = DEFAULT_OPERATORS,
    *,
    cpt: str = FACTORED,
    signed: bool = False,
    weight_scale: float = WEIGHT_SCALE,
    top_scores: TopScores | None = None,
    pair_scale: int = PAIR_SCALE,
) -> list[ScoringNode]:
    """Works like ``compose_query``, for many queries. Every distinct text is encoded once, all in one batch."""
    parsed = parsed_queries(queries)
    asked = [query for query in parsed if query.expression is not None]
    trees: Iterator[ScoringNode] = iter(())
    if asked:
        if encoder is None:
            raise EncodingError(f"no encoder for {asked[0].text!r}", remedy="name one")
        composed = scoring_trees(asked, encoder, operators)
        trees = iter(resolved(composed, operators.union, top_scores, weight_scale, signed))
    with gathered_warnings():
        return [
            _runnable(query, next(trees), cpt, signed, weight_scale, pair_scale)
            if query.composed is None
            else query.composed
            for query in parsed
        ]


def query_pairs(queries: Sequence[Query], encoder: QueryEncoder | None = None) -> tuple[str, ...]:
    """The pairs that an index must hold to run the conjunctions of queries in the ``materialised`` form, sorted.

    They are the pairs of ``cpt`` and of ``cpt-maxpool`` with their default number of terms. What NOT excludes stays in
    plain terms, so its conjunctions are not among them. A composed query has the pairs of its own products and leaves,
    whatever its operators are.

    Args:
        queries: Expressions and composed queries.
        encoder: Gives the vectors of texts. Composed queries need no encoder.

    Raises:
        EncodingError: An expression has no encoder, or a text cannot be encoded.

    >>> query_pairs([Product(({"birds": 4.0}, {"andes": 1.0, "colombia": 2.0}))])
    ('andes∩birds', 'birds∩colombia')
    """
    parsed = parsed_queries(queries)
    trees = [query.composed for query in parsed if query.composed is not None]
    asked = [
        query.changed(lambda one: without_exclusions(without_differences(one)))
        for query in parsed
        if query.expression is not None
    ]
    if asked:
        if encoder is None:
            raise EncodingError(f"no encoder for {asked[0].text!r}", remedy="name one")
        encoder = EncodedOnce(encoder)
        for intersection in ("cpt", "cpt-maxpool"):
            trees += scoring_trees(asked, encoder, Operators(intersection=intersection))
    return tuple(sorted({pair for tree in trees for pair in _pairs(tree)}))


def _pairs(tree: ScoringNode) -> Iterator[str]:
    for node in nodes(tree):
        if isinstance(node, Linear):
            yield from filter(is_pair, node.weights)
        elif isinstance(node, Product) and node.is_sum_over_tuples and len(node.operands) == 2:
            yield from filter(is_pair, cpt_pairs(node.operands, top=max(map(len, node.operands))))


def lacking_pairs(node: ScoringNode, known: Collection[str]) -> tuple[list[str], int]:
    """The pairs in the leaves of an adapted query that are not among the known ones, and how many pairs it has."""
    pairs = {pair for part in nodes(node) if isinstance(part, Linear) for pair in part.weights if is_pair(pair)}
    return sorted(pairs.difference(known)), len(pairs)


def checked_queries(queries: Sequence[Query]) -> list[Query]:
    """Refuses anything but a list of queries."""
    queries = checked_list("queries", queries)
    for query in queries:
        if not isinstance(query, Query):
            what = "a text, an expression, a reading or a composed query"
            raise ArgumentError(f"a query must be {what}, got {shown(query)}")
    return queries


def parsed_queries(queries: Sequence[Query], read: str | Path = READINGS[0]) -> list[ParsedQuery]:
    """Checks queries, and reads the texts among them in one of the ways of ``--read``."""
    queries = checked_queries(queries)
    texts = [query for query in queries if isinstance(query, str)]
    read_ones = iter(read_texts(texts, read) if texts or read != READINGS[0] else ())
    return [parsed_query(next(read_ones) if isinstance(query, str) else query) for query in queries]


def parsed_query(query: Query) -> ParsedQuery:
    """A query as it is understood. A text is parsed."""
    if isinstance(query, ParsedQuery):
        return query
    if isinstance(query, Decomposition):
        return ParsedQuery(query.expression, query)
    if isinstance(query, ScoringNode):
        return ParsedQuery(composed=query)
    return ParsedQuery(parse(query) if isinstance(query, str) else query)


def query_text(query: Query) -> str:
    """A query as text for people."""
    return query if isinstance(query, str) else parsed_query(query).text


def why_empty(query: Query) -> str:
    """Why a query whose composed form ``is_empty`` finds nothing. What a composed query was made of is not known.

    >>> why_empty("zebra"), why_empty("zebra NOT horse")
    ('no document has its words', 'no document has its words, or NOT takes them away')
    """
    expression = parsed_query(query).expression
    scored = expression and without_exclusions(expression)  # NOT! takes no words away
    whole = scored is not None and without_differences(scored) == scored
    return "no document has its words" + ("" if whole else ", or NOT takes them away")


MOST_ATOMS = 20_000
"""The most atoms of an expression, repeated ones included. Time and memory grow linearly with the atoms."""


def scoring_trees(
    queries: Sequence[ParsedQuery], encoder: QueryEncoder, operators: Operators = DEFAULT_OPERATORS
) -> list[ScoringNode]:
    """The scoring tree of each expression. Its weights are not yet rounded, and its nodes may be open.

    Every distinct text is encoded once, all in one batch. If an expression was read from a plain text and a part is
    excluded from the whole expression, ``damped`` uses all atoms of the text as context.
    """
    expressions = [query.expression for query in queries if query.expression is not None]
    assert len(expressions) == len(queries)  # composed queries have their trees
    for expression in expressions:
        if (count := sum(1 for _ in leaves(expression))) > MOST_ATOMS:
            what = f"an expression may have {MOST_ATOMS:,} atoms, this one has {count:,}"
            raise QueryError(what, remedy="split it into several queries")
        check_exclusions(expression)
    for query, expression in zip(queries, expressions, strict=True):
        if query.reading is None and _ALL in atoms(expression):
            what = f"{_ALL} means all documents as a whole query, and is no part of {shown(query.text)}"
            raise QueryError(what, remedy="write the expression without it, or use a filter")
    rewritten = [verbalised(expression, operators) for expression in expressions]
    texts = [text for expression in rewritten for text in atoms(expression)]
    vectors = atom_vectors(list(dict.fromkeys(texts)), encoder)
    worded = list(dict.fromkeys(text for expression in rewritten for text in worded_atoms(expression)))
    words = atom_words(worded, encoder, vectors)
    wordless = {text: shown(text) for text in worded if vectors[text] and not any(words[text].values())}
    warn_of("atom", "atoms", "the index has none of its words, so no document has it", wordless, worded)
    composer = Composer(operators, vectors, words)
    contexts = [
        atoms(expression) if query.reading and not isinstance(expression, Union) else ()
        for expression, query in zip(rewritten, queries, strict=True)
    ]
    with gathered_warnings():
        trees = [
            replace(composer, context=context).compose(expression)
            for expression, context in zip(rewritten, contexts, strict=True)
        ]
        warn_of_unknown_atoms(rewritten, trees, vectors)
        said = f"NOT ({operators.names['difference']}) removes all its positive terms; choose another --difference"
        names = [shown(format_expression(expression)) for expression in rewritten]
        emptied = {
            name: name
            for name, expression, tree in zip(names, rewritten, trees, strict=True)
            if is_empty(tree) and not is_empty(composer.compose(without_differences(expression)))
        }
        warn_of("query", "queries", said, emptied, names)
    return trees


def _runnable(
    query: ParsedQuery, tree: ScoringNode, cpt: str, signed: bool, weight_scale: float, pair_scale: int
) -> ScoringNode:
    """Pairs get the products of the weights that the ``factored`` form has, so the two differ by rounding only."""
    try:
        node = quantised(adapted(tree, signed=signed), weight_scale)
        node = with_rounded_pairs(adapted(node, cpt), pair_scale) if cpt != FACTORED else node
    except QueryError as error:
        raise error.at(f"query {query.text!r}") from None
    wanted = kept_terms(tree)
    heaviest = max((weight for term, weight in positive_weights(tree).items() if term in wanted), default=0.0)
    text = query.text
    said = f"all weights round to 0 at weight scale {weight_scale:g}, so the heaviest count 1; raise --weight-scale"
    found = {text: shown(text)} if heaviest and not round(heaviest * weight_scale) else {}
    warn_of("query", "queries", said, found, [text])
    return node
