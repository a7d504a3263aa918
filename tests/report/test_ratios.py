import itertools

from batchspec.report.ratios import MeanOfRatios, acceptance_length, ratio


def test_an_empty_denominator_gives_nothing() -> None:
    assert ratio(0, 0) is None
    assert acceptance_length(num_accepted=0, num_steps=0) is None
    assert MeanOfRatios().value is None


def test_the_documentations_example_to_the_last_digit() -> None:
    assert acceptance_length(num_accepted=10, num_steps=43) == 1.2325581395348837
    assert ratio(10, 129) == 0.07751937984496124


def test_the_mean_does_not_depend_on_the_order() -> None:
    means = set()
    for terms in itertools.permutations([1e16, 1.0, -1e16, 0.1, 1 / 3]):
        mean = MeanOfRatios()
        for term in terms:
            mean.add(term)
        means.add(mean.value)
    assert len(means) == 1


def test_absent_terms_are_left_out() -> None:
    mean = MeanOfRatios()
    for term in (None, 0.5, None, 1.0):
        mean.add(term)
    assert mean.value == 0.75
    assert mean.num_terms == 2
