"""Files of ratings for the MovieLens model: what is read, and what is refused in which words."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from stan_models.ratings import read_ratings
from stan_models.recipes import RECIPES

U_DATA = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n"
READ = {"userId": [196.0, 186.0, 22.0], "movieId": [242.0, 302.0, 377.0], "rating": [3.0, 3.0, 1.0]}


def written(folder: Path, text: str) -> Path:
    path = folder / "u.data"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        U_DATA,
        U_DATA.replace("\t", ","),
        U_DATA.replace("\n", "\r\n") + "\n\n",
        "\ufeffuserId,movieId,rating,timestamp\n" + U_DATA.replace("\t", ","),
        "user\titem\trating\n196\t242\t3\n186\t302\t3\n22\t377\t1\n",
        "User ID\tItem ID\tRating\tTimestamp\n" + U_DATA,
        'movieId,title,rating,userId\n242,"Kolya, 1996",3,196\n302,L.A.,3,186\n377,H,1,22\n',
    ],
    ids=["u.data", "commas", "blank lines", "header", "other names", "with blanks", "other order"],
)
def test_what_is_read(text: str, tmp_path: Path) -> None:
    table = read_ratings(written(tmp_path, text))
    assert {name: values.tolist() for name, values in table.items()} == READ


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no ratings: it is empty"),
        ("userId,movieId,rating\n", "nothing follows the header"),
        ("userId,film,rating\n1,2,3\n", "lacks movieId"),
        (U_DATA + "22 377 1\n", "line 4: a line is user, item, rating and"),
        ("196 242 3 881250949\n", "Fields are separated by tabs or by commas"),
        ("1\t2\t3\t4\t5\n", "this one has 5 fields"),
        (U_DATA + "x\t377\t1\t1\n", "line 4: the user is a whole number, not 'x'"),
        (U_DATA + "1\t3.5\t1\t1\n", "line 4: the item is a whole number, not '3.5'"),
        (U_DATA + "1\t2\t6\t1\n", "line 4: a rating is a number from 0.5 to 5, not '6'"),
        (U_DATA + "1\t2\t\t1\n", "line 4: a rating is a number from 0.5 to 5, not ''"),
        (U_DATA + "1\t2\tnan\t1\n", "not 'nan'"),
        (U_DATA + "22\t377\t4\t1\n", "line 4: user 22 rates item 377 a second time, after line 3"),
    ],
)
def test_what_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        read_ratings(written(tmp_path, text))
    assert "u.data" in str(refused.value)


def test_an_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ml-100k.zip"
    path.write_bytes(gzip.compress(U_DATA.encode()))
    with pytest.raises(ValueError, match="ml-100k.zip is no UTF-8 text. Unpack an archive"):
        read_ratings(path)


def test_the_paper_s_part_of_a_file(tmp_path: Path) -> None:
    """Of 52 users and 52 films, two of each rated least: they are left out, whatever the order of the lines."""
    kept = [(user, film, 1 + (user * film) % 5) for user in range(3, 53) for film in range(3, 53) if (user + film) % 7]
    few = [(1, 3, 5), (1, 1, 5), (2, 4, 4), (2, 2, 2), (2, 3, 3)]
    order = np.random.default_rng(1).permutation(len(kept) + len(few))
    ratings = [(*few, *kept)[i] for i in order]
    path = written(tmp_path, "".join(f"{user}\t{film}\t{rating}\t88125\n" for user, film, rating in ratings))
    data = RECIPES["movielens_uncentred"].data(path)
    matrix = np.full((50, 50), np.nan)
    matrix.T.flat[data["cell"] - 1] = data["y"]  # cells are counted down the columns
    expected = np.full((50, 50), np.nan)
    for user, film, rating in kept:
        expected[user - 3, film - 3] = rating
    np.testing.assert_array_equal(matrix, expected)
    # centred: minus the mean of all ratings, those that are left out too
    mean = np.mean([rating for *_, rating in ratings])
    np.testing.assert_allclose(RECIPES["movielens"].data(path)["y"], data["y"] - mean, atol=1e-12)
    assert abs(mean - data["y"].mean()) > 1e-4  # negative control


def test_too_few_users_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 users; the model takes the 50 with most ratings"):
        RECIPES["movielens"].data(written(tmp_path, U_DATA))
