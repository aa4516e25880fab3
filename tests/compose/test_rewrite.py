from expression_strategies import expressions
from hypothesis import given
from hypothesis import strategies as st

from pyserini_compneg.compose import Operators
from pyserini_compneg.compose.rewrite import verbalised
from pyserini_compneg.expression import Atom, Difference, Intersection, Union, parse


@given(expressions(st.sampled_from("abcd")))
def test_no_vanilla_node_is_left(expression):
    def nodes(node):
        children = [] if isinstance(node, Atom) else getattr(node, "operands", None) or [node.left, node.right]
        return [node, *(below for child in children for below in nodes(child))]

    for kind, setting in ((Union, "union"), (Intersection, "intersection"), (Difference, "difference")):
        after = verbalised(expression, Operators(**{setting: "vanilla"}))
        assert not any(isinstance(node, kind) for node in nodes(after))


def test_a_vanilla_subtree_is_worded_as_it_is_written():
    vanilla = Operators(intersection="vanilla")
    assert verbalised(parse("(a NOT b) AND c NOT d"), vanilla) == Difference(
        Atom("(a that are not b) that are also c"), Atom("d")
    )
    everything = Operators("vanilla", "vanilla", "vanilla")
    assert verbalised(parse("a AND b NOT c"), everything) == Atom("a that are also b but not c")
