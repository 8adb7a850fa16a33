"""Parsing of Stan programs: exact positions, stanc's precedence, includes with their lines, edits that keep lines."""

import re

import pytest

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.language import source
from bread.backends.stan.language.scopes import resolve
from bread.backends.stan.language.source import Source, blank_comments
from bread.backends.stan.language.syntax import end, line, name_of, nodes, parse, start, strip, terms, walk
from bread.backends.stan.split.rewriting import Edit, apply_edits, map_column
from bread.errors import InvalidArgumentError, UnsupportedModelError
from tests.support.stan_corpus_table import CORPUS, stanc

MINIMAL = "parameters { real mu; } model { target += %s; }"


def expression(text):
    """Parse one expression."""
    statement = nodes(parse(Source.from_text(MINIMAL % text))["model_block"])[0]
    return nodes(statement)[1]


def shape(node):
    """Return an expression as nested lists, parentheses and blocks of one statement left out."""
    if node.data == "parenthesised" or (node.data == "block" and len(nodes(node)) == 1):
        return shape(nodes(node)[0])
    return [str(node.data), *(shape(child) if hasattr(child, "data") else str(child) for child in node.children)]


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_positions_are_those_of_the_text(case):
    source = case.source
    blocks = parse(source)
    rows = source.text.split("\n")
    n_names = 0
    for block in blocks.values():
        for node in walk(block):
            if node.data == "variable":
                n_names += 1
                assert source.text[start(node) : end(node)] == name_of(node)
                assert name_of(node) in rows[line(node) - 1]
    assert n_names > 0


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_tree_is_that_of_stancs_canonical_form(case):
    """stanc prints every parenthesis that precedence implies, so equal trees mean equal precedence."""
    canonical = stanc(case.source.text, "--print-canonical")
    assert canonical.returncode == 0, canonical.stderr
    theirs, ours = parse(Source.from_text(canonical.stdout)), parse(case.source)
    assert list(theirs) == list(ours)
    for rule, block in ours.items():
        assert shape(block) == shape(theirs[rule])


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("-a ^ b * c", "(-(a ^ b)) * c"),
        ("a - b - c", "(a - b) - c"),
        ("a / b * c", "(a / b) * c"),
        ("a ^ b ^ c", "a ^ (b ^ c)"),
        ("a + b %/% c \\ d", "a + (b %/% (c \\ d))"),
        ("-x' * y", "(-(x')) * y"),
        ("a < b == c > d", "(a < b) == (c > d)"),
        ("a || b && !c", "a || (b && (!c))"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("a .* b + c ./ d", "(a .* b) + (c ./ d)"),
        ("x[1, 2 : 3]'[4]", "((x[1, 2 : 3])')[4]"),
    ],
)
def test_precedence(text, grouped):
    assert shape(expression(text)) == shape(expression(grouped))


def test_precedence_test_tells_trees_apart():
    assert shape(expression("a - b - c")) != shape(expression("a - (b - c)"))


@pytest.mark.parametrize(
    "text",
    ["int_x + real1", "T + lower * upper", "offset[2 : ]", "x[ : , k]", "1.5e-3 + .5 + 2. * x", "f(a | b, c)", "g()"],
)
def test_names_and_numbers_are_whole(text):
    assert terms(expression(text))


def test_terms_carry_signs_through_parentheses():
    found = [(sign, str(node.children[0])) for sign, node in terms(expression("a - (b - c) + -d"))]
    assert found == [(1, "a"), (-1, "b"), (1, "c"), (-1, "d")]


def test_comments_are_blanked_at_equal_length():
    text = 'real a; // one ~ two\n/* b\n */ print("// kept"); # old\n'
    blanked = blank_comments(text)
    assert len(blanked) == len(text)
    assert '"// kept"' in blanked and "one" not in blanked and "\n" not in blanked and "old" not in blanked


def test_scopes_tell_equal_names_apart():
    text = "parameters { real a; } model { { real m = 1; a ~ normal(m, 1); } { real m = 2; a ~ normal(m, 1); } }"
    scopes = resolve(parse(Source.from_text(text)))
    first, second = (variable for variable in scopes.variables if variable.name == "m")
    assert first is not second
    used = [scopes.uses[match.start()] for match in re.finditer(r"m(?=, 1)", text)]
    assert used == [first, second]


def test_declarations():
    text = "data { int N; } parameters { array[N, 2] vector<lower=-1, upper=N>[3] x; cov_matrix[4] S; }"
    scopes = resolve(parse(Source.from_text(text)))
    x, s = scopes.of_kind("parameter")
    assert (x.rank, x.plain, len(x.array_sizes), list(x.bounds)) == (3, "vector", 2, ["lower", "upper"])
    assert (s.rank, s.plain, len(s.dimensions)) == (2, "matrix", 2)


INCLUDING = "data {\n  int N;\n  vector[N] y;\n}\n#include priors.stan // parameters and model\n"
INCLUDED = "parameters {\n  real mu;\n}\nmodel {\n  mu ~ normal(0, 1);\n  y ~ normal(mu, 1);\n}\n"


def test_includes_are_inserted_with_their_places(tmp_path):
    (tmp_path / "priors.stan").write_text(INCLUDED)
    (tmp_path / "main.stan").write_text(INCLUDING)
    source = Source.from_file(tmp_path / "main.stan")
    assert [tuple(source.origin(n)) for n in (3, 5, 10)] == [("main.stan", 3), ("priors.stan", 1), ("priors.stan", 6)]
    program = analyse(source, observed=None, stanc=stanc)
    assert program.is_automatic and program.observed == ("y",)
    assert [source.origin(c.line).file for c in program.contributions] == ["priors.stan", "priors.stan"]


def test_refusal_inside_an_include_names_that_file(tmp_path):
    (tmp_path / "priors.stan").write_text(INCLUDED.replace("mu ~ normal(0, 1);", ""))
    program = analyse(Source.from_text(INCLUDING, "main.stan", [tmp_path]), observed=None, stanc=stanc)
    assert program.simulator_refusal is not None
    assert tuple(program.simulator_refusal.place) == ("priors.stan", 2)


def test_missing_and_circular_includes_are_refused(tmp_path):
    with pytest.raises(UnsupportedModelError, match=r"'main.stan', line 5: #include priors.stan was not found"):
        Source.from_text(INCLUDING, "main.stan", [tmp_path])
    (tmp_path / "priors.stan").write_text("#include priors.stan\n")
    with pytest.raises(UnsupportedModelError, match="includes itself"):
        Source.from_text(INCLUDING, "main.stan", [tmp_path])


def test_includes_end_however_they_are_nested(tmp_path, monkeypatch):
    """Twice the next file, which doubles the text each time; and a chain of files deeper than the stack of Python."""
    monkeypatch.setattr(source, "MOST_LINES", 2000)
    for number in range(40):
        (tmp_path / f"{number}.stan").write_text(f"#include {number + 1}.stan\n" * 2)
    (tmp_path / "40.stan").write_text("")
    with pytest.raises(UnsupportedModelError, match=r"^'\d+.stan', line \d: with its includes .* more than 2000 lines"):
        Source.from_text("#include 0.stan", "main.stan", (tmp_path,))
    for number in range(1500):
        (tmp_path / f"chain{number}.stan").write_text(f"#include chain{number + 1}.stan\n")
    with pytest.raises(UnsupportedModelError, match=r"#include chain200.stan is nested more than 200 deep"):
        Source.from_text("#include chain0.stan", "main.stan", (tmp_path,))
    (tmp_path / "chain199.stan").write_text("real x;\n")  # the control: as deep as it may be
    assert Source.from_text("#include chain0.stan", "main.stan", (tmp_path,)).text == "real x;"


def test_stancs_own_message_reaches_the_user():
    with pytest.raises(InvalidArgumentError, match=r"(?s)broken.stan.*line 1.*nu"):
        analyse(
            Source.from_text("parameters { real m; } model { m ~ normal(nu, 1); }", "broken.stan"),
            observed=None,
            stanc=stanc,
        )


def test_edits_keep_line_ends_and_do_not_overlap():
    text = "ab\ncd\n"
    assert apply_edits(text, [Edit(3, 3, "x"), Edit(0, 1, "yz")]) == "yzb\nxcd\n"
    with pytest.raises(ValueError, match="number of lines"):
        apply_edits(text, [Edit(0, 0, "\n")])
    with pytest.raises(ValueError, match="overlap"):
        apply_edits(text, [Edit(0, 3, "\n"), Edit(2, 4, "x\n")])


def test_columns_are_mapped_back():
    text = "  y ~ normal(mu, 1);"
    edits = [Edit(2, 2, "target += f("), Edit(4, 13, "| ")]
    edited = apply_edits(text, edits)
    for word in ("mu", "y ", "1)"):
        assert map_column(edits, text, 1, edited.index(word) + 1) == text.index(word) + 1
    assert map_column(edits, text, 1, edited.index("target") + 3) == 3


def test_parenthesised_expressions_are_stripped():
    assert strip(expression("((a))")).data == "variable"
