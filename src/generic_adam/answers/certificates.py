"""The words of certificates, of the guarantee for a run, and of bounds on a problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from generic_adam.answers.settings import notes, rates, remarks
from generic_adam.answers.suspicion import Suspicion, suspected
from generic_adam.answers.words import Line, argument_of, words_of
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
_IN_BRIEF: Final = {
    "weights_bound": "weights",
    "gradient_norm": "gradients",
    "gradient_sup": "gradient entries",
    "update_rms": "updates before clipping",
}
_DECIDED_BY: Final = {
    "endless": "the total learning rate is finite; the guarantee needs it to grow without limit",
    "infinite_sum": "the total learning rate is finite; the guarantee needs it to grow without limit",
    "squares_have_a_sum": "lr does not fall fast enough",
    "steps_vanish": "lr does not fall to 0",
    "momentum": "beta1 does not stay below a number below 1",
    "momentum_below_one": "beta1 does not stay below a number below 1",
    "bound_vanishes": "lr and beta2 together do not make the error vanish",
    "decay_vanishes": "weight decay does not vanish beside lr, which leaves an error that stays",
    "keeps_direction": "gradient clipping that acts is biased",
    "weights_stay_bounded": "weight decay needs weights within a limit (--weights-bound X)",
}
_NOTHING_LEFT: Final = 1e-6  # of the largest lr: printed as 0
_WIDEST: Final = 12  # of a label
_INSTEAD: Final = (
    Line("`Watch(optimizer)` in the script; `generic-adam diagnose DIR`", "Your run"),
    Line("`generic-adam verify --from CODE`: is it what you think it is?", "Your code"),
)


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
            return f"{part.about} has no bound for a number of steps"
        case kind:
            return _BEYOND.get(kind) or part.about


@words_of.register
def _(part: HorizonAnswer) -> str:
    """Return the answer for the run in one sentence, as a part of another answer."""
    said = f"{part.answer} for {part.steps:,} steps"
    match part.answer:
        case Answer.GUARANTEED:
            holds = ", if what is assumed holds" if part.needs else ""
            return f"{said}: {_size(part)}{holds}"
        case Answer.NOT_USEFUL:
            return f"{said}: {_times(part)} the trivial bound ({cause(part)})"
        case Answer.UNKNOWN:
            return f"{said}: {part.unknown}"
        case _:
            return f"{said}; {_in_the_way(part)}"


def check_lines(
    part: Certificate, *, change: Advice | None = None, command: str = "", seen: Suspicion | None = None
) -> list[Line]:
    """Return the answer about an optimizer, line by line.

    Args:
        part: the certificate.
        change: a change that helps its run; None where none was found.
        command: the command that looks for more; "" for none.
        seen: the kind of training that the source looks like; None for what the algorithm itself looks like.
    """
    if part.answer is Answer.NOT_APPLICABLE:
        return [*_not_applicable(str(part.setting.loss)), *_notes(part.algorithm)]
    seen = None if part.setting.loss else seen or suspected(part.algorithm)
    changes = _change(part, change, command) if command else ()
    return [
        *doubted(_head(part), seen),
        *_run_lines(part),
        *_long_run_lines(part),
        *changes,
        *_closing(part),
        *_notes(part.algorithm),
    ]


words_of.register(check_lines)


def _change(part: Certificate, change: Advice | None, command: str) -> Iterator[Line]:
    """Yield what to change, its cost, and whether it is worth it."""
    run = part.horizon
    if change is not None and change.before is not None and change.after is not None and change.cost is not None:
        (old, new), word = change.cost.memory, "optional: " if part.answer is Answer.GUARANTEED else ""
        size = f"{rounded_up(100 * (change.after.size or 0.0), 3)} %"
        yield Line(f"{word}{', '.join(map(str, change.changes))} makes it {size}; lr unchanged", "Change")
        yield Line(f"adapts to larger gradients in {new:,.0f} steps, not {old:,.0f}", "Its cost")
        yield Line(str(change.worth), "Worth it?")
    elif part.answer is Answer.GUARANTEED:
        yield Line(f"none needed; for more: {command}", "Change")
    elif run is None:
        yield Line(f"look for one: {command}", "Change")
    else:
        fine = part.setting.loss == "finetune"
        yield Line("none recommended" if fine else f"look for one: {command}", "Change")
        yield Line("no; choose lr and steps by validation loss", "Worth it?")


def title(x: Algorithm, *, is_part: bool = False) -> str:
    """Return what an algorithm is called; a part of an optimizer by its parameter groups as well."""
    groups = f", group{'s'[: len(x.groups) - 1]} {', '.join(map(str, x.groups))}" if is_part else ""
    return f"{x.label or 'Generic Adam'}{groups}"


def _not_applicable(loss: str) -> Iterator[Line]:
    why = "in RL the loss changes with the policy" if loss == "rl" else "in a GAN each loss changes with the other net"
    yield Line(f"DOES NOT APPLY: {why}.", verdict="DOES NOT APPLY")
    yield Line("all assume one fixed loss", "Theorems")
    yield from _INSTEAD


def only_if(setting: Setting, *, assumes: bool) -> str:
    """Return what a guarantee hangs on that the input does not tell, as the end of its first line."""
    loss = "" if setting.loss else "the loss is one fixed function"
    return f", if {loss or 'the assumptions below hold'}" if loss or assumes else ""


def doubted(lines: Iterator[Line], seen: Suspicion | None) -> Iterator[Line]:
    """Put the doubt first where the input looks like RL or a GAN; the answer is what holds if it is neither."""
    if seen is not None:
        first = next(lines)
        flag = "rl" if seen.kind == "RL" else "gan"
        told = f"{seen.kind} ({seen.why}), where no theorem applies: say --setting {flag}, or supervised."
        yield Line(f"LOOKS LIKE {told}", verdict="LOOKS LIKE")
        words = first.text.split(" ")
        shouted = sum(1 for _ in takewhile(str.isupper, words))
        yield Line(" ".join([*map(str.lower, words[:shouted]), *words[shouted:]]), "If neither")
    yield from lines


def _head(part: Certificate) -> Iterator[Line]:
    """Yield the answer for the run, or for the long run where no number of steps is known."""
    run = part.horizon
    if run is None:
        known = part.plainly
        word, rest = known.long_run.upper(), long_run_rest(known)
        if known.long_run is Answer.GUARANTEED:
            yield Line(f"{word} in the long run{only_if(part.setting, assumes=bool(part.needs))}.", verdict=word)
            yield Line(rest.lstrip("; "), "Long run")
        else:
            yield Line(f"{word} in the long run{rest}", verdict=word)
        yield Line("add --steps T for the answer about your run", "Your run")
        return
    said = f"{run.answer.upper()} for {run.steps:,} steps"
    match run.answer:
        case Answer.GUARANTEED:
            said += f"{only_if(part.setting, assumes=bool(_assumed(part)))}."
        case Answer.NOT_USEFUL:
            fine = part.setting.loss == "finetune"
            said += ". Normal for fine-tuning; predicts nothing." if fine else ". It does not predict failure."
        case _:
            said += "."
    yield Line(said, verdict=run.answer.upper())
    if run.answer is Answer.NONE:
        yield Line(_in_the_way(run), "Cause")
    if run.answer is Answer.UNKNOWN:
        yield Line(str(run.unknown), "Cause")
    if run.outside and run.relative is not None:
        without = _size(run) if run.relative < 1 else f"the bound would be {_times(run)} the trivial one"
        yield Line(f"{without} (not guaranteed)", "Without that")
    grants = [*_to_assume(part.algorithm, part.setting, run)] or [*_facts_asked_for(part)]
    if grants:
        yield Line("; ".join(grants), "To assume")
    if run.outside and run.with_problem:
        yield Line(f"`generic-adam bound` has {run.with_problem} for a problem whose constants you know", "Instead")


def _to_assume(x: Algorithm, setting: Setting, run: HorizonAnswer) -> Iterator[str]:
    """Yield the facts that bring clipping or decay inside the theory, where nothing else is outside."""
    clip = x.clipping
    if {one.kind for one in run.outside} - {"clipping"} or (clip is not None and clip.kind == "update"):
        return
    if run.outside and clip is not None and clip.kind == "norm" and setting.gradient_norm is None:
        yield f"that clipping never acts: --gradient-norm {clip.threshold:g}"
    if run.decay is None and setting.weights_bound is None:
        yield "that all weights stay within X: --weights-bound X"


def _facts_asked_for(part: Certificate) -> Iterator[str]:
    """Yield the options that say what a theorem lacks which is about nothing else than such an algorithm."""
    for finding in part.findings if part.horizon is not None and part.horizon.outside else ():
        lacks = [one.about for one in finding.outside if one.kind == "missing"]
        if finding.about is About.GRADIENT and lacks and len(lacks) == len(finding.outside):
            options = " ".join(kinds()[name].option for name in lacks).replace("KIND", "symmetric")
            yield f"{options} (Theorem {finding.theorem})"


def _in_the_way(run: HorizonAnswer) -> str:
    if not run.outside:
        return "weight decay is covered while all weights stay within a limit"
    errors = [one.about for one in run.outside if one.kind == "error"]
    return "; ".join(errors) or f"outside the theory: {'; '.join(map(str, run.outside))}"


def _size(run: HorizonAnswer) -> str:
    where = {"RR": " at the starts of epochs", "P": " per relative change of the weights"}.get(run.theorem or "", "")
    return f"gradients{where} average below {rounded_up(100 * (run.size or 0.0), 3)} % of the size they have anyway"


def _times(run: HorizonAnswer) -> str:
    share = run.size or math.inf
    return f"{rounded_up(max(share, 1.0), 3)}x" if share < 100 else "far more than 100x"


def cause(run: HorizonAnswer, x: Algorithm | None = None) -> str:
    """Return the part of the bound that is in the way, and what would help."""
    rate = "" if x is None else _peak(x)
    if x is not None and (run.floor or 0) >= 1 and x.method.beta.is_constant and x.method.theta.is_constant:
        beta1, beta2 = x.method.beta(1), x.method.theta(1)
        return f"beta2 = {beta2:g} averages too few gradients; beta1 = {beta1:g} needs beta2 > {_least(beta1)}"
    match run.dominant:
        case "start":
            needed = run.steps_needed
            enough = f"; about {float(f'{needed:.2g}'):,.0f} would do" if needed else ""
            return f"starting-point part: few, small steps{rate}{enough}"
        case "curvature":
            largest = run.largest_smoothness
            unless = f" unless curvature < {_down(largest)}" if largest else ""
            return f"curvature part: lr is too large for this guarantee{unless}{rate}"
        case "decay":
            return "weight decay part: too strong for weights of that size"
        case _:
            # The share of eps and v_0 falls with larger gradients, and may be all that is in the way.
            small = (run.size or math.inf) ** 2 < run.norm
            said = "eps is large beside gradients of 0.001" if small else "beta2 averages too few gradients"
            return f"noise part: {said}, or the run is too short"


def _least(beta1: float) -> str:
    return rounded_up(least_theta(beta1), 3)


def _run_lines(part: Certificate) -> Iterator[Line]:
    """Yield the guarantee and its parts, or what is in the way where the bound is of no use."""
    run = part.horizon
    if run is None or run.relative is None:
        return
    if run.answer is Answer.GUARANTEED:
        yield Line(_size(run), f"Theorem {run.theorem}")
    if run.answer is Answer.NOT_USEFUL:
        yield Line(cause(run, part.algorithm), "Cause")
    if math.isfinite(run.relative) and not run.outside:
        yield Line(_shares(run), "Parts")
    if run.depends_on_gradients and not run.outside:
        larger = run.relative + (run.steeper - 1) * (run.parts["noise"] + run.parts["decay"])
        lost = run.useful and larger >= 1
        there = "gradients of 1 have no guarantee" if lost else f"at 1 the noise is {run.steeper:.2g}x this"
        yield Line(f"gradients of {TYPICAL_GRADIENT:g} per weight; {there}", "Scale")
    if run.symmetric is not None:
        yield Line(f"{run.symmetric}", "If symmetric")
    if isinstance(run.bound, Bound):
        yield Line(_norm_bound(run.bound), "Your problem")


def _shares(run: HorizonAnswer) -> str:
    """Return the parts that make up the bound, the largest first; those below a tenth are told together."""
    whole = run.relative or 0.0
    first, *others = sorted(run.parts.items(), key=lambda one: -one[1])
    named = [(name, part) for name, part in others if part >= 0.1 * whole]
    rest = sum(part for _, part in others) - sum(part for _, part in named)
    told = [f"{first[0]} {_up(first[1])} of 1", *(f"{name} {_up(part)}" for name, part in named)]
    told += [f"rest {_up(rest)}"] if rest > 0 else []
    floor = f"; noise floor {_down(run.floor, 3)}" if run.floor and run.floor < whole and not named else ""
    return f"{', '.join(told)}; lower is better{floor}"


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


def long_run_rest(part: Certificate) -> str:
    """Return what follows the answer for the long run: its rate, or what is in the way."""
    if part.long_run is Answer.GUARANTEED:
        rate = "" if part.rate is None else f"; error about {_rate(part.rate)}"
        found = part.deciding
        holds = " if the assumptions hold" if part.needs else ""
        return f"{holds}{rate}{'' if found is None else f' ({found.title})'}."
    if part.outside:
        return f"; outside the theory: {'; '.join(map(str, part.outside))}."
    told = f": {_failing(part)}." if part.failing is not None else "."
    return f"{told} This is normal." if part.long_run is Answer.NONE else told


def _failing(part: Certificate) -> str:
    """Return the hypothesis that fails for the long run, in the names that people use."""
    found, theta = part.failing, part.algorithm.method.theta
    if found is None:
        return ""
    fails = found.status is Status.FAILS
    if found.asks == "theta_to_one" and fails:
        return f"beta2 is constant ({theta(1):g})" if theta.is_constant else "beta2 does not approach 1"
    if found.asks in _DECIDED_BY and (fails or found.asks in {"keeps_direction", "weights_stay_bounded"}):
        return _DECIDED_BY[found.asks]
    return f"hypothesis {found.number} of its theorem {'fails' if fails else 'is open'} (--explain tells)"


def _rate(rate: Rate) -> str:
    """Return an order such as "log T / sqrt T"."""
    if rate.power != -0.5 or rate.loglog or rate.log not in {0, 1}:
        return str(rate)
    return "log T / sqrt T" if rate.log else "1 / sqrt T"


def _long_run_lines(part: Certificate) -> Iterator[Line]:
    known = part.plainly
    run = part.horizon
    if run is not None:
        same = run.outside and {*known.outside} == {*run.outside}
        yield Line(f"{known.long_run}{', for the same reason.' if same else long_run_rest(known)}", "Long run")
    if known is not part:
        yield Line(f"in the long run {part.long_run}{long_run_rest(part)}", "If symmetric")


def _closing(part: Certificate) -> Iterator[Line]:
    """Yield what is left to say: what is assumed, what is not covered, how it was read."""
    setting, assumed, run = part.setting, _assumed(part), part.horizon
    brief = {fact.text for fact in setting.facts.values() if fact.source is Source.ASSUMED and fact.name in _IN_BRIEF}
    told = [*assumed_in_brief(setting), *(one for one in assumed if one not in brief)]
    if run is not None and run.relative is not None and run.gradient_sum is None:
        fine = f" (useful up to {_down(run.largest_gap)} and {_down(run.largest_smoothness)})" if run.useful else ""
        told.append(f"loss gap and curvature 1{fine}")
    if told:
        yield Line("; ".join(told), "Assumed")
    epochs = ["shuffled epochs"] if setting.sampling is None and not setting.full_batch else []
    yield Line(", ".join([*epochs, "ReLU kinks", "batch norm", "RL, GANs"]), "Not covered")
    if part.parts:
        shared = "each alone" if part.apart else "together"
        yield Line(f"{len(part.parts)} sets of parameter groups, covered {shared}; --explain has each", "Groups")
    yield Line(_in_short(part.algorithm), "Read as")
    if part.algorithm.notes:
        yield Line("; ".join(part.algorithm.notes), "NOTE")


def _notes(x: Algorithm) -> list[Line]:
    """Return what the settings alone tell where it matters, whatever any theorem says."""
    return [Line(said, "NOTE") for said in notes(x)]


def assumed_in_brief(setting: Setting) -> list[str]:
    """Return the sizes that are assumed, those of one size together: "weights and gradients within 1"."""
    found: dict[float, list[str]] = {}
    for name, fact in setting.facts.items():
        if fact.source is Source.ASSUMED and name in _IN_BRIEF:
            found.setdefault(fact.value, []).append(_IN_BRIEF[name])
    noise = ["symmetric noise"] if "noise" in setting.facts else []
    return [*(f"{' and '.join(names)} within {size:g}" for size, names in found.items()), *noise]


def _assumed(part: Certificate) -> list[str]:
    """Return what the answer takes for granted, each with where it is from."""
    run = () if part.horizon is None else part.horizon.needs
    return [*dict.fromkeys((*run, *(part.needs if part.long_run is Answer.GUARANTEED else ())))]


def _in_short(x: Algorithm) -> str:
    """Return the optimizer in a line, by the names of its arguments."""
    betas = [f"{u(1):g}" if u.is_constant else "moving" for u in (x.method.beta, x.method.theta)]
    named = [f"betas {', '.join(betas)}"] if x.preconditioned else []
    clip = [] if x.clipping is None else [f"clipping at {x.clipping.threshold:g} ({x.clipping.kind})"]
    decay = ["weight decay"] if x.decay != NOTHING or x.l2 else []
    return f"{title(x)}: {'; '.join([_lr(x), *named, *decay, *clip])}"


def _lr(x: Algorithm) -> str:
    try:
        steps, values = rates(x)
    except GenericAdamError:
        return "lr of its own"
    first, largest, at, last = values[0], values.max(), int(steps[values.argmax()]), values[-1]
    if first == largest == last:
        return f"lr {_plain(f'{first:.3g}')}"
    top = f"lr {largest:.3g} at step {float(f'{at:.2g}'):,.0f}" if at > 1 else f"lr {first:.3g}"
    if last == largest:
        return top
    return (
        f"{top}, then to {last if last > _NOTHING_LEFT * largest else 0:.3g}" if x.horizon else f"{top}, then falling"
    )


def _peak(x: Algorithm) -> str:
    try:
        return f" (lr {_plain(f'{rates(x)[1].max():.2g}')})"
    except GenericAdamError:
        return ""


@words_of.register
def _(part: Bound) -> Iterator[Line]:
    if part.theorem is None:
        yield Line(f"NO BOUND after {part.steps:,} steps.", verdict="NO BOUND")
        reasons: dict[str, list[str]] = {}
        for name, why in part.missing:
            reasons.setdefault(str(why), []).append(name)
        for why, names in sorted(reasons.items(), key=lambda one: len(one[1]))[:3]:  # that of the fewest is nearest
            yield Line(why, ", ".join(names)[:_WIDEST])
    else:
        word = "GUARANTEED" if part.informative else "NO USEFUL GUARANTEE"
        condition = only_if(part.setting, assumes=False) if part.informative else ""
        yield Line(f"{word} after {part.steps:,} steps{condition}.", verdict=word)
        yield Line(_norm_bound(part), f"Theorem {part.theorem}"[:_WIDEST])
        if part.l1 is not None:
            yield Line(f"at most {rounded_up(part.l1, 6)}; trivial: {rounded_up(part.trivial_l1, 6)}", "Entries' sum")
        likely, above = _down(part.probability, 3), rounded_up(math.sqrt(part.value), 6)
        yield Line(f"at a random step of the run, at most {above} with probability {likely}", "One step")
    if part.l2:
        yield Line(f"the loss + {part.l2 / 2:g} |weights|^2", "Loss")
    facts = part.setting.facts.values()
    defaults = ", ".join(
        f"{one.name.replace('_', ' ')} {one.value:g}"
        for one in facts
        if one.source is Source.ASSUMED and one.name != "loss"
    )
    given = [one.text for one in facts if one.source in {Source.GIVEN, Source.MEASURED}]
    needs = [one for one in part.needs if one not in given]
    if needs or defaults:
        yield Line("; ".join([*needs, *([f"{defaults} (nothing was said of them)"] if defaults else [])]), "Assumed")
    if given:
        yield Line("; ".join(given), "Given")


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
    return [*lines, *(f"settings: {one}" for one in remarks(part.algorithm, part.setting.batch)), *_not_covered(part)]


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
    """Return a verdict; of a theorem without a guarantee for the long run, what it says if its hypotheses hold."""
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
    together: dict[str, list[str]] = {}
    for reason, titles in in_the_way.items():
        together.setdefault(", ".join(titles), []).append(str(reason))
    lines = [f"  {titles}: {'; '.join(reasons)}" for titles, reasons in together.items()]
    return ["", *["not covered, and why:"][: len(lines)], *lines, NOT_COVERED]
