import pytest

from nutkin.errors import InvalidOption
from nutkin.sampler import Init, Options


@pytest.mark.parametrize(
    "wrong",
    [
        {"chains": 0},
        {"chains": 1025},
        {"draws": 0},
        {"warmup": -1},
        {"seed": -1},
        {"seed": 2**64},
        {"target_accept": 0.0},
        {"target_accept": 1.0},
        {"target_accept": float("nan")},
        {"max_tree_depth": 0},
        {"max_tree_depth": 16},
        {"init": Init(radius=-1.0)},
        {"init": Init(radius=float("nan"))},
        {"adaptation": "stan"},
        {"mass_matrix": "round"},
        {"thin": 0},
        {"precision": "f16"},
        {"rewrites": ["parameter_free", "other"]},
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(wrong):
    with pytest.raises(InvalidOption) as error:
        Options(**wrong)
    assert next(iter(wrong)) in error.value.message
    assert error.value.expected
    assert error.value.found


def test_the_defaults_are_valid():
    assert Options() == Options(chains=4, draws=1000, warmup=1000)
