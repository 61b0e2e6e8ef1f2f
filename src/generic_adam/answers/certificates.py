"""The words of certificates, of the guarantee for a run, and of bounds on a problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from generic_adam.answers.layout import ALWAYS, Line
from generic_adam.answers.settings import rates, remarks
from generic_adam.answers.words import argument_of, words_of
from generic_adam.errors import GenericAdamError
from generic_adam.methods import Algorithm
from generic_adam.schedules.balls import rounded_up
from generic_adam.setting import Setting, Source, kinds
from generic_adam.theorems.advice import Advice
from generic_adam.theorems.bounds import Bound
from generic_adam.theorems.certificate import FOR_EVER, Certificate
from generic_adam.theorems.decide import Rate, Status
from generic_adam.theorems.horizon import TYPICAL_GRADIENT, HorizonAnswer, least_theta
from generic_adam.theorems.theorem import NOT_COVERED, NOTHING, About, Answer, Condition, Finding, Reason

_BEYOND: Final = {
    "initial_v": "v_0 = 0",
    "eps": "an eps that is added to the root",
    "decay": "decoupled weight decay",
    "running_maximum": "the running maximum of AMSGrad",
    "power": "a root that is no square root",
    "nesterov": "Nesterov momentum",
    "heavy_ball": "heavy-ball momentum after the division",
    "clipping": "gradient clipping",
    "preconditioned": "plain SGD, where nothing divides the step",
    "delayed": "a divisor that is made of earlier gradients",
    "factored": "factored second moments",
    "centered": "centred second moments",
    "scaled": "steps scaled by the parameters",
    "shuffled": "shuffled epochs",
    "groups": "parameter groups whose learning rates have different shapes (each is covered alone)",
}
_MOVES: Final = {
    "rl": "in RL the data and the loss change with the policy",
    "gan": "in a GAN the loss of each network changes with the other network",
}
_NORMAL: Final = "Normal; it does not predict failure."
_IN_BRIEF: Final = {
    "weights_bound": "weights within {:g} (assumed)",
    "gradient_norm": "gradients within {:g} (assumed)",
    "gradient_sup": "gradients within {:g} (assumed)",
}
_NOT_COVERED: Final = ("ReLU kinks", "batch norm", "RL and GANs", "a schedule that looks at the loss")


@words_of.register
def _(part: Reason) -> str:
    match part.kind:
        case "missing":
            return kinds()[part.about].missing
        case "moving_loss":
            return f"a loss that changes during the run ({part.about})"
        case "drawn":
            return f"the data are {part.about}: the gradients are unbiased, and other theorems say more"
        case "spent":
            return f"not finished within the work limit, rerun with --budget 20 ({part.about})"
        case "longest":
            return f"runs are computed up to {part.about} steps"
        case "problem":
            return f"the learning rates alone do not tell; with the constants of the problem `bound` has {part.about}"
        case "numbers":
            return f"{part.about} speaks of no number of steps"
        case kind:
            return _BEYOND.get(kind) or part.about


@words_of.register
def _(part: HorizonAnswer) -> str:
    return f"{_for_the_run(part)}{_if(bool(part.needs))}"


def check_lines(part: Certificate, *, change: Advice | None = None, command: str = "", keys: int = 0) -> list[Line]:
    """Return the answer about an optimizer, line by line.

    Args:
        part: what is known of it.
        change: a change that helps its run; None where none was found.
        command: the command that looks for more; "" for none.
        keys: the number of keys that were read from a file.
    """
    if part.answer is Answer.NOT_APPLICABLE:
        return [*_not_applicable(part)]
    changes = _change(part, change, command) if command else ()
    return [*_head(part), *_run_lines(part), *_long_run_lines(part), *changes, *_closing(part, keys)]


words_of.register(check_lines)


def _change(part: Certificate, change: Advice | None, command: str) -> Iterator[Line]:
    """Yield what to change and whether it is worth it; often nothing."""
    run = part.horizon
    if change is not None and change.before is not None and change.after is not None and change.cost is not None:
        what, (old, new) = ", ".join(map(str, change.changes)), change.cost.memory
        sizes = " -> ".join(f"{rounded_up(100 * (one.size or 0.0), 3)} %" for one in (change.before, change.after))
        word = "optional: " if part.answer is Answer.GUARANTEED else ""
        cost = f"lr unchanged; cost: averages {new:,.0f} gradients, not {old:,.0f}, so it is slower after they jump"
        yield Line(f"{word}{what}: gradients below {sizes}; {cost}", "Change", 6, f"{word}{what}: below {sizes}")
        short = f"Measured on {change.worth.measured[0]}" if change.worth.known else None
        yield Line(str(change.worth), "Worth it?", 5, short)
    elif run is not None and part.setting.loss == "finetune":
        yield Line("none recommended", "Change", 6)
        yield Line("No. Choose lr and epochs by validation loss.", "Worth it?", 5)
    elif part.answer is Answer.GUARANTEED:
        yield Line(f"none needed; for more: {command}", "Change", 6, "none needed")
    else:
        yield Line(f"to look for one: {command}", "Change", 6)
        if run is not None:
            word = "No" if part.answer is Answer.NOT_USEFUL else "Not known"
            yield Line(f"{word}. Choose lr and steps by validation loss.", "Worth it?", 5)


def title(x: Algorithm, *, is_part: bool = False) -> str:
    """Return what an algorithm is called; a part of an optimizer by its parameter groups as well."""
    groups = f", group{'s'[: len(x.groups) - 1]} {', '.join(map(str, x.groups))}" if is_part else ""
    return f"{x.label or 'Generic Adam'}{groups}"


def _if(assumes: bool) -> str:
    return ", if what is assumed below holds" if assumes else ""


def _not_applicable(part: Certificate) -> Iterator[Line]:
    why = _MOVES[str(part.setting.loss)]
    yield Line(f"DOES NOT APPLY: the theory assumes one fixed loss; {why}.", weight=ALWAYS, verdict="DOES NOT APPLY")
    yield Line("`Watch(optimizer)` in the script, then `generic-adam diagnose DIR`.", "Your run", ALWAYS)
    yield Line("`generic-adam verify --from CODE` tells whether it is the algorithm you think.", "Your code", ALWAYS)


def _head(part: Certificate) -> Iterator[Line]:
    """Yield the answer for the run, or for the long run where no number of steps is known."""
    run = part.horizon
    if run is None:
        known = part.plainly
        word, rest = known.long_run.upper(), long_run_rest(known)
        yield Line(f"{word} as steps go to infinity{rest}", weight=ALWAYS, verdict=word)
        yield Line("add --steps T for the guarantee of your number of steps", "Your run", 4)
        return
    by = f", Theorem {run.theorem}" if run.theorem and run.answer is Answer.GUARANTEED else ""
    said = f"{run.answer.upper()} for your {run.steps:,} steps"
    match run.answer:
        case Answer.GUARANTEED:
            rest = f"{_if(bool(_assumed(part)))}: {_size(run)}."
        case Answer.NOT_USEFUL if part.setting.loss == "finetune":
            rest = ". Expected for fine-tuning: the run is short; it does not predict failure."
        case Answer.NOT_USEFUL:
            short = "Normal for short runs; it" if run.dominant == "start" else "It"
            rest = f": the bound is {_times(run)} the trivial one. {short} predicts neither failure nor success."
        case Answer.NONE:
            rest = f"; {_in_the_way(run)}."
        case _:
            rest = f": {run.unknown}."
    yield Line(f"{said}{rest}   ({title(part.algorithm)}{by})", weight=ALWAYS, verdict=run.answer.upper())
    if run.outside and run.relative is not None:
        without = _size(run) if run.relative < 1 else f"the bound would be {_times(run)} the trivial one"
        yield Line(f"{without} (not guaranteed)", "Without that", 7)
    grants = [*_to_assume(part.algorithm, part.setting, run)] or [*_facts_asked_for(part)]
    if grants:
        yield Line("; ".join(grants), "To assume", 8)
    if run.outside and run.with_problem:
        yield Line(f"`generic-adam bound` has {run.with_problem} for a problem whose constants you know", "Instead", 6)


def _to_assume(x: Algorithm, setting: Setting, run: HorizonAnswer) -> Iterator[str]:
    """Yield the facts that bring clipping or decay inside the theory, where nothing else is outside."""
    clip = x.clipping
    if {one.kind for one in run.outside} - {"clipping"} or (clip is not None and clip.kind == "update"):
        return
    if run.outside and clip is not None and clip.kind == "norm" and setting.gradient_norm is None:
        yield f"that no gradient is longer than {clip.threshold:g}, so that clipping never acts: --gradient-norm"
    if run.decay is None and setting.weights_bound is None:
        yield "that all weights stay within X: --weights-bound X"


def _facts_asked_for(part: Certificate) -> Iterator[str]:
    """Yield the options that say what a theorem lacks which is about nothing else than such an algorithm."""
    for finding in part.findings if part.horizon is not None and part.horizon.outside else ():
        lacks = [one.about for one in finding.outside if one.kind == "missing"]
        if finding.about is About.GRADIENT and lacks and len(lacks) == len(finding.outside):
            yield f"{' '.join(kinds()[name].option for name in lacks)} (Theorem {finding.theorem})"


def _for_the_run(run: HorizonAnswer) -> str:
    """Return the answer for the run in one sentence, as a part of another answer."""
    match run.answer:
        case Answer.GUARANTEED:
            return f"guaranteed for {run.steps:,} steps: {_size(run)}"
        case Answer.NOT_USEFUL:
            return f"no useful guarantee for {run.steps:,} steps: {_times(run)} the trivial bound ({_cause(run)})"
        case Answer.UNKNOWN:
            return f"unknown for {run.steps:,} steps: {run.unknown}"
        case _:
            return f"no guarantee for {run.steps:,} steps; {_in_the_way(run)}"


def _in_the_way(run: HorizonAnswer) -> str:
    if not run.outside:
        return "weight decay is covered while all weights stay within a limit"
    errors = [one.about for one in run.outside if one.kind == "error"]
    return "; ".join(errors) or f"outside the theory: {', '.join(map(str, run.outside))}"


def _size(run: HorizonAnswer) -> str:
    there = f" (gradients of {TYPICAL_GRADIENT:g})" if run.depends_on_gradients else ""
    where = {"RR": " at the starts of epochs", "P": " per relative change of the weights"}.get(run.theorem or "", "")
    size = rounded_up(100 * (run.size or 0.0), 3)
    return f"gradients{where} average below {size} % of the size they have anyway{there}"


def _times(run: HorizonAnswer) -> str:
    share = run.size or math.inf
    # The share of eps and v_0 in the divisor falls with larger gradients, and may be all that is in the way.
    small = f" (on gradients of {TYPICAL_GRADIENT:g})" if run.dominant == "noise" and share**2 < run.norm else ""
    return (f"{rounded_up(max(share, 1.0), 3)}x" if share < 100 else "far more than 100x") + small


def _cause(run: HorizonAnswer, x: Algorithm | None = None) -> str:
    """Return the part of the bound that is in the way, and what would help."""
    rate = "" if x is None else _peak(x)
    match run.dominant:
        case "start":
            needed = run.steps_needed
            enough = f"It would take about {float(f'{needed:.2g}'):,.0f} such steps." if needed else ""
            return f"starting-point part: few, small steps{rate}. {enough}".rstrip(" .")
        case "curvature":
            largest = run.largest_smoothness
            unless = f" unless curvature < {_down(largest)}" if largest else ""
            return f"curvature part: lr is too large for this guarantee{unless}{rate}"
        case "decay":
            return "weight decay part: too strong for weights of that size"
        case _:
            stays = run.floor is not None and run.floor >= 1
            if x is None or not (stays and x.method.beta.is_constant and x.method.theta.is_constant):
                return "noise part: beta2 averages too few gradients, or the run is too short"
            beta1, beta2 = x.method.beta(1), x.method.theta(1)
            needed = rounded_up(least_theta(beta1), 3)
            return f"noise part: beta2 = {beta2:g} averages too few gradients; beta1 = {beta1:g} needs beta2 > {needed}"


def _run_lines(part: Certificate) -> Iterator[Line]:
    """Yield the parts of the bound, each with its direction, and what is in the way where the bound is of no use."""
    run, x = part.horizon, part.algorithm
    if run is None or run.relative is None:
        return
    if run.answer is Answer.NOT_USEFUL:
        yield Line(f"{_cause(run, x)}.", "Cause", 8)
    if math.isinf(run.relative):
        return
    shares, theta = run.parts, x.method.theta
    noise = f"{rounded_up(shares['noise'], 3)} of 1, lower is better"
    stays = run.floor is not None and run.floor <= shares["noise"]
    floor = f"; {_down(run.floor, 3)} stays however long the run is" if stays and run.floor else ""
    steady = theta.is_constant and 0 < theta(1) < 1
    mean = f" (beta2 = {theta(1):g} averages about {1 / (1 - theta(1)):,.0f} gradients)" if steady else ""
    yield Line(f"{noise}{floor}{mean}", "Noise part", 4, f"{noise}{floor}")
    gap, drift = (_up(run.norm * (number or 0.0)) for number in (run.gap, run.drift))
    decay = f" + {_up(shares['decay'])} weight decay" if run.decay else ""
    moved = f", and {_up(run.moved)} x curvature after the root" if run.moved else ""
    curvature = f"({run.turning:g} + curvature)" if run.turning else "curvature"
    sums = f"+ {gap} x initial loss gap + {drift} x {curvature}{decay}{moved}"
    useful = ""
    if run.useful:
        useful = f"; useful while gap < {_down(run.largest_gap)}, curvature < {_down(run.largest_smoothness)}"
    taken = " (yours)" if run.gradient_sum is not None else " (both in units of the gradient, taken as 1)"
    yield Line(f"{sums}{taken}, lower is better{useful}", "Start, curvature", 3, f"{sums}{useful}")
    if run.symmetric is not None:
        yield Line(f"{_for_the_run(run.symmetric)}.", "Symmetric noise", 7)
    if isinstance(run.bound, Bound):
        yield Line(f"{_norm_bound(run.bound)}", "Your problem", 7)


def _up(number: float) -> str:
    return _plain(rounded_up(number, 2))


def _down(number: float | None, digits: int = 2) -> str:
    if number is None or math.isinf(number):
        return "any"
    return _plain(rounded_up(-number, digits).removeprefix("-"))


def _plain(text: str) -> str:
    """Write a number out where it is of a size that people write out."""
    number = float(text)
    return f"{number:,.0f}" if 1000 <= number < 1e7 else f"{number:g}" if 1e-4 <= number < 1e4 else text


def long_run_rest(part: Certificate, *, brief: bool = False) -> str:
    """Return what follows the answer for the long run: its rate, or what is in the way, in brief without what helps."""
    if part.long_run is Answer.GUARANTEED:
        rate = "" if part.rate is None else f"; error about {_rate(part.rate)}"
        found = part.deciding
        title_ = "" if found is None else f" ({found.title})"
        needs = f", provided {', and '.join(part.needs)}" if part.needs else ""
        return f"{needs}{rate}{title_}."
    if part.outside:
        return f"; outside the theory: {'; '.join(map(str, part.outside))}."
    told = f": {_failing(part, brief=brief)}." if part.failing is not None else "."
    return f"{told} {'Normal.' if brief else _NORMAL}" if part.long_run is Answer.NONE else told


def _failing(part: Certificate, *, brief: bool) -> str:
    """Return the hypothesis that fails for the long run, in the names that people use."""
    found, method = part.failing, part.algorithm.method
    if found is None:
        return ""
    if found.asks == "theta_to_one" and found.status is Status.FAILS:
        if method.theta.is_constant:
            needs = "" if brief else "; the guarantee needs it to approach 1"
            return f"beta2 is constant ({method.theta(1):g}){needs}"
        return "beta2 does not approach 1, as the guarantee needs"
    finite = "the total learning rate is finite; the guarantee needs it to grow without limit"
    momentum = "beta1 does not stay below a number below 1"
    plain = {
        "endless": finite,
        "infinite_sum": finite,
        "squares_have_a_sum": "lr does not fall fast enough",
        "steps_vanish": "lr does not fall to 0, as the guarantee needs",
        "momentum": momentum,
        "momentum_below_one": momentum,
        "bound_vanishes": "lr and beta2 together do not make the error vanish",
        "decay_vanishes": "weight decay does not vanish beside lr, which leaves an error that stays",
        "keeps_direction": "gradient clipping that acts is biased; clipping that never acts is covered",
        "weights_stay_bounded": "weight decay is covered while all weights stay within a limit (--weights-bound X)",
    }
    open_too = {"keeps_direction", "weights_stay_bounded"}
    if found.asks in plain and (found.status is Status.FAILS or found.asks in open_too):
        return plain[found.asks]
    how = "fails" if found.status is Status.FAILS else "is open"
    return f"hypothesis {found.number} of its theorem {how} (--explain tells)"


def _rate(rate: Rate) -> str:
    """Return an order such as "log T / sqrt T"."""
    if rate.power != -0.5 or rate.loglog or rate.log not in {0, 1}:
        return str(rate)
    return "log T / sqrt T" if rate.log else "1 / sqrt T"


def _long_run_lines(part: Certificate) -> Iterator[Line]:
    known = part.plainly
    if part.horizon is not None:
        short = f"{known.long_run}{long_run_rest(known, brief=True)}"
        yield Line(f"{known.long_run}{long_run_rest(known)}", "Long run", 7, short)
    if known is not part:
        yield Line(f"in the long run {part.long_run}{long_run_rest(part)}", "Symmetric noise", 7)


def _closing(part: Certificate, keys: int) -> Iterator[Line]:
    """Yield what is left to say: what is assumed, what is not covered, how it was read."""
    setting, assumed = part.setting, _assumed(part)
    if assumed:
        known = {
            one.text: one for one in setting.facts.values() if one.source is Source.ASSUMED and one.name in _IN_BRIEF
        }
        brief = [_IN_BRIEF[one.name].format(one.value) for text, one in known.items() if text in assumed]
        others = [one for one in assumed if one not in known]
        yield Line(f"{'; '.join(assumed)}; `Watch` measures such facts", "Assumed", 9, "; ".join([*brief, *others]))
    epochs = ["shuffled epochs"] if setting.sampling is None and not setting.full_batch else []
    ask = f"(add --sampling shuffled{'' if setting.batches_per_epoch else ' --batches-per-epoch N'})"
    uncovered = ", ".join([*(f"{one} {ask}" for one in epochs), *_NOT_COVERED])
    yield Line(uncovered, "Not covered", 8, ", ".join([*epochs, *_NOT_COVERED[:3]]))
    if part.parts:
        shared = "each alone" if part.apart else "together"
        yield Line(f"{len(part.parts)} sets of parameter groups, covered {shared}; --explain has each", "Groups", 5)
    read = f" (from {keys} keys of the file, which --explain lists)" if keys else ""
    yield Line(f"{_in_short(part.algorithm)}{read}", "Read as", 2)
    if part.algorithm.notes:
        yield Line("; ".join(part.algorithm.notes), "Note", 1)


def _assumed(part: Certificate) -> list[str]:
    """Return what the answer takes for granted, each with where it is from."""
    run = () if part.horizon is None else part.horizon.needs
    return [*dict.fromkeys((*run, *(part.needs if part.long_run is Answer.GUARANTEED else ())))]


def _in_short(x: Algorithm) -> str:
    """Return the optimizer in a line, by the names of its arguments."""
    named = {"beta1": x.method.beta, "beta2": x.method.theta} if x.preconditioned else {}
    betas = [f"{name} {f'{u(1):g}' if u.is_constant else 'moves'}" for name, u in named.items()]
    clip = [] if x.clipping is None else [f"clipping at {x.clipping.threshold:g} ({x.clipping.kind})"]
    decay = ["weight decay"] if x.decay != NOTHING or x.l2 else []
    return f"{title(x)}: {'; '.join([_lr(x), *betas, *decay, *clip])}"


def _lr(x: Algorithm) -> str:
    try:
        steps, values = rates(x)
    except GenericAdamError:
        return "lr of its own"
    first, largest, at, last = values[0], values.max(), int(steps[values.argmax()]), values[-1]
    if first == largest == last:
        return f"lr {_plain(f'{first:.3g}')}"
    top = f"lr {largest:.3g} at most (about step {float(f'{at:.2g}'):,.0f})" if at > 1 else f"lr {first:.3g} at first"
    if last == largest:
        return top
    return f"{top}, {last:.3g} at the end" if x.horizon else f"{top}, then falling"


def _peak(x: Algorithm) -> str:
    try:
        return f" (your lr: {_plain(f'{rates(x)[1].max():.2g}')})"
    except GenericAdamError:
        return ""


@words_of.register
def _(part: Bound) -> Iterator[Line]:
    if part.theorem is None:
        yield Line(f"NO BOUND after {part.steps:,} steps.", weight=ALWAYS, verdict="NO BOUND")
        reasons: dict[str, list[str]] = {}
        for name, why in part.missing:
            reasons.setdefault(str(why), []).append(name)
        for why, names in sorted(reasons.items(), key=lambda one: len(one[1]))[:3]:  # that of the fewest is nearest
            yield Line(why, ", ".join(names)[:16], 4)
    else:
        word = "GUARANTEED" if part.informative else "NO USEFUL GUARANTEE"
        said = f"{word} after {part.steps:,} steps: {_norm_bound(part)}.   (Theorem {part.theorem})"
        yield Line(said, weight=ALWAYS, verdict=word)
        if part.l1 is not None:
            sums = f"at most {rounded_up(part.l1, 6)}; trivial: {rounded_up(part.trivial_l1, 6)}"
            yield Line(sums, "Sum of entries", 5)
        likely, above = _down(part.probability, 3), rounded_up(math.sqrt(part.value), 6)
        yield Line(f"with probability {likely} the norm is at most {above}", "At one iterate", 4)
    if part.needs:
        yield Line(", ".join(part.needs), "Assumed", 8)
    if part.l2:
        yield Line(f"the loss + {part.l2 / 2:g} |weights|^2", "Loss", 7)
    defaults = [one for one in part.setting.facts.values() if one.source is Source.ASSUMED]
    if defaults:
        told = ", ".join(f"{one.name.replace('_', ' ')} {one.value:g}" for one in defaults)
        yield Line(f"{told}: the defaults, as nothing is said of them", "Assumed", 7)
    given = [one for one in part.setting.facts.values() if one.source in {Source.GIVEN, Source.MEASURED}]
    if given:
        yield Line("; ".join(one.text for one in given), "Given", 6)


def _norm_bound(part: Bound) -> str:
    """Return the bound beside the trivial one: E|g| <= (E|g|^(4/3))^(3/4) by Jensen's inequality."""
    if math.isinf(part.expectation):
        return "the bound exceeds the largest double"
    size, trivial = (rounded_up(math.sqrt(number), 6) for number in (part.expectation, part.trivial))
    return f"the gradient's norm averages at most {size}, lower is better; trivial: {trivial}"


@argument_of.register
def _(part: Bound) -> list[str]:
    said = f"(E |grad f(x_tau)|^(4/3))^(3/2) <= {rounded_up(part.expectation, 6)}" if part.theorem else ""
    others = [f"theorem {name}: {rounded_up(number, 6)}" for name, number in part.others]
    return [*filter(None, [said]), *others, *(f"{name}: {why}" for name, why in part.missing)]


_NUMBERS: Final = (
    "the share of the trivial bound that is left, squared, is at most noise + gap (f(x_1) - f*)/G + drift d L/G: G "
    "sums the bounds on the gradient's d coordinates, L is its Lipschitz constant"
)


@argument_of.register
def _(part: Certificate) -> list[str]:
    """Return what the numbers mean, and what every theorem says of every part."""
    run = part.horizon
    lines: list[str] = []
    if run is not None and run.noise is not None:
        numbers = (("noise", run.noise), ("gap", run.gap), ("drift", run.drift), ("decay", run.decay))
        told = ", ".join(f"{name} {rounded_up(one * (1 + run.rounding), 4)}" for name, one in numbers if one)
        lines.append(f"{told} (Theorem {run.theorem}): {_NUMBERS}")
    for one in part.parts or (part,):
        run_ = "" if one.horizon is None else f"; {one.horizon}"
        named = f"{title(one.algorithm, is_part=True)}: long run {one.long_run}{run_}"
        lines += ["", *([named] if part.parts else []), *sequences(one.algorithm)]
        for finding in one.findings:
            lines += [str(finding), *argument_of(finding)] if finding.covers else []
    from_settings = [f"settings: {one.text}" for one in remarks(part.algorithm)]
    return [*lines, *from_settings, *_not_covered(part)]


def sequences(x: Algorithm) -> list[str]:
    """Return the three sequences, and what the step does that the paper's does not, a line each."""
    named = (("alpha", x.method.alpha), ("beta", x.method.beta), ("theta", x.method.theta))
    lines = [f"{name}_t = {u}" for name, u in (named if x.preconditioned else named[:1])]
    return [*lines, *(["the step:", *(f"  {one}" for one in x.departures)] if x.departures else [])]


@words_of.register
def _(part: Finding) -> str:
    if not part.covers:
        return f"{part.title} does not cover it: {'; '.join(map(str, part.outside))}"
    return f"{part.title}: {_word(part)}{'' if part.rate is None else f', rate {part.rate}'}"


@argument_of.register
def _(part: Finding) -> list[str]:
    """Return every hypothesis, and what the theorem takes for granted."""
    return [
        *(f"  {one.number} {one.status}: {one.reason}" for one in part.conditions),
        *(f"  takes for granted: {need}" for need in part.needs),
        *(f"  {remark}" for remark in part.remarks),
    ]


def _word(part: Finding) -> str:
    """Return a verdict; of a theorem that certifies nothing for ever, what it says where its hypotheses hold."""
    if part.about in FOR_EVER:
        return str(part.verdict)
    failing: Condition | None = part.first_failing
    if failing is None:
        return str(part.about)
    return "does not apply" if failing.status is Status.FAILS else "undecided"


def _not_covered(part: Certificate) -> list[str]:
    """Return what keeps theorems from covering the algorithm or a part of it, and what none covers."""
    in_the_way: dict[Reason, dict[str, None]] = {}
    findings: Sequence[Finding] = [one for each in part.parts or (part,) for one in each.findings]
    for finding in findings:
        for reason in finding.outside:
            in_the_way.setdefault(reason, {})[finding.title] = None
    lines = [f"  {', '.join(titles)}: {reason}" for reason, titles in in_the_way.items()]
    return ["", *["not covered, and why:"][: len(lines)], *lines, NOT_COVERED]
