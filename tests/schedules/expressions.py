"""Random schedules for the laws: positive by construction, so that every operation is defined."""

from hypothesis import strategies as st

from generic_adam.schedules import Schedule, exp, join, log, maximum, minimum, parse, sqrt, t

numbers = st.sampled_from(["0.001", "0.1", "0.5", "0.9", "1", "2", "7.5", "1/3", "1e-8"])
exponents = st.sampled_from(["-1", "-0.5", "0.25", "1/3", "0.5", "0.8", "1", "2"])


def _leaves() -> st.SearchStrategy[Schedule]:
    return st.one_of(
        numbers.map(parse),
        st.just(t),
        st.builds(lambda shift: t + shift, st.integers(1, 9)),
        st.builds(lambda ratio: parse(ratio) ** t, st.sampled_from(["0.5", "0.99", "1.01"])),
    )


def _grown(parts: st.SearchStrategy[Schedule]) -> st.SearchStrategy[Schedule]:
    return st.one_of(
        st.builds(lambda a, b: a + b, parts, parts),
        st.builds(lambda a, b: a * b, parts, parts),
        st.builds(lambda a, b: a / b, parts, parts),
        st.builds(lambda a, p: a ** parse(p), parts, exponents),
        st.builds(sqrt, parts),
        st.builds(lambda a: log(a + 2), parts),
        st.builds(lambda a: exp(-1 / (1 + a)), parts),
        st.builds(maximum, parts, parts),
        st.builds(minimum, parts, parts),
        st.builds(join, parts, st.integers(2, 40), parts),
    )


def positive_schedules(leaves: int = 6) -> st.SearchStrategy[Schedule]:
    """Schedules with u_t > 0 for every t >= 1."""
    return st.recursive(_leaves(), _grown, max_leaves=leaves)
