"""The settings for composing and encoding queries."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_compneg.compose import CPT_FORMS, WEIGHT_SCALE, Operators, QueryEncoder
from pyserini_compneg.compose.operators import DEFAULT_OPERATORS, chosen_operators
from pyserini_compneg.encode import query_encoder
from pyserini_compneg.encode.hybrid import LATENT_WEIGHT, MODEL_WEIGHT
from pyserini_compneg.encode.models import ABLATIONS, ModelOptions
from pyserini_compneg.encode.query_encoders import RareTermEncoder
from pyserini_compneg.lucene import LANGUAGES, Reader
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.options import FINITE, POSITIVE, SHARE, check_options, option
from pyserini_compneg.support.terminal import shown


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings of a :class:`SignedImpactSearcher`.

    Attributes:
        operators: The operators for union, intersection and difference.
        cpt: The form of conjunctions: ``factored``, or ``materialised`` for an index with pairs.
        weight_scale: Query weights are round(w · weight_scale). Composed queries keep their weights.
        model_options: The options for running a model that encodes the atoms; None for the defaults.
        ablation: The part of the model's query vectors to leave out, one of ``encode.models.ABLATIONS``; None for
            nothing.
        model_weight: The share of the model in the scores of ``bm25+MODEL``: the query weights of its terms are
            multiplied by this number. None for the default.
        latent_weight: The same for the latents of ``bm25+latent``.
        min_idf: The terms of atoms whose idf, ln(documents / documents with the term), is this or lower are left out.
            None leaves out no terms. 0 leaves out terms that every document has, as Pyserini does.
        language: The language in which ``bm25`` analyses queries of an index that stock Anserini built. None for
            English. An index of this package knows its own.

    Raises:
        ArgumentError: A setting has an unknown value or is out of its range.
    """

    operators: Operators = DEFAULT_OPERATORS
    cpt: str = option(
        CPT_FORMS[0],
        "form of conjunctions: factored suits any index (default), materialised needs index --pair-terms",
        choices=CPT_FORMS,
    )
    weight_scale: float = option(
        WEIGHT_SCALE,
        f"query weight = round(weight * X); composed queries keep their weights (default {WEIGHT_SCALE:g})",
        POSITIVE,
    )
    model_options: ModelOptions | None = None
    ablation: str | None = option(
        None,
        "leave out of query vectors: terms that are not tokens of the query (no-expansion), weights (no-weighting), or "
        "both, so that no network runs (doc-only)",
        choices=ABLATIONS,
    )
    model_weight: float | None = option(
        None,
        f"share of the model in bm25+MODEL: its query weights are multiplied by X (default {MODEL_WEIGHT:g})",
        SHARE,
    )
    latent_weight: float | None = option(
        None,
        f"share of the latents in bm25+latent: their query weights are multiplied by X (default {LATENT_WEIGHT:g})",
        SHARE,
    )
    min_idf: float | None = option(
        None,
        "leave out terms of a query whose idf, ln(documents / documents with the term), is X or lower; 0 leaves out "
        "terms of every document, as Pyserini does (default: none)",
        FINITE,
    )
    language: str | None = option(
        None,
        "language in which bm25 analyses the queries of an index of stock Anserini, as for index (default en); other "
        "indexes know theirs",
        choices=LANGUAGES,
        metavar="LANGUAGE",
    )

    def __post_init__(self) -> None:
        chosen_operators(self.operators)
        check_options(self)

    def encoder(self, given: str | Path | QueryEncoder | None, reader: Reader) -> QueryEncoder:
        """The encoder of the queries of an index: the given one, or the one that the index's manifest names."""
        if given is None or isinstance(given, (str, Path)):
            name = None if given is None else str(given)
            given = query_encoder(
                name,
                reader,
                self.model_options,
                self.ablation,
                self.model_weight,
                self.language,
                self.latent_weight,
            )
        return given if self.min_idf is None else RareTermEncoder(given, reader, self.min_idf)

    def opener(self, kind: Callable[..., Any], index: object, reader: Reader, given: object) -> partial[Any]:
        """The call that a searcher is pickled as. It opens the index again, in the process that loads the pickle."""
        if not isinstance(index, (str, Path)):
            what = f"a searcher of {shown(index)} cannot be pickled"
            raise ArgumentError(what, remedy="give it the folder of an index, or open a searcher in each process")
        check_pickled(given)
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        return partial(kind, os.path.abspath(reader.folder), given, **options)


def check_pickled(encoder: object) -> None:
    """Refuses an encoder that cannot be pickled, before the searcher that has it is pickled."""
    try:
        pickle.dumps(encoder)
    except Exception as cause:  # of any type: from the encoder's own code
        remedy = "name an encoder, or open a searcher in each process"
        raise ArgumentError(f"the encoder {shown(encoder)} cannot be pickled: {cause}", remedy=remedy) from None
