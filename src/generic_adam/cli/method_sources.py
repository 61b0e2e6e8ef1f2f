"""Methods that are not written out on the command line: published recipes, and the user's own optimizers."""

from generic_adam.cli.method_options import NamedMethod


def from_recipe(name: str) -> NamedMethod:
    """A published recipe, with the steps it was run for and what the theorem does not cover."""
    from generic_adam.methods.recipes import recipe

    found = recipe(name)
    return NamedMethod(found.name, found.method, found.outside, (f"source: {found.source}",), found.horizon)


def from_function(
    reference: str, steps_per_scheduler_step: int | None, steps: int | None
) -> tuple[NamedMethod, ...]:
    """What `package.module:function` returns, one method for each set of parameter groups that differ.

    Args:
        reference: the function; it returns an optimizer, (optimizer, scheduler), a Lightning configuration or
            transformers.TrainingArguments.
        steps_per_scheduler_step: the optimizer steps for each step of the scheduler; None where not given.
        steps: the number of steps, where Trainer's arguments do not say.
    """
    from generic_adam.adapters import load, read

    algorithm = read(load(reference), steps_per_scheduler_step=steps_per_scheduler_step, steps=steps)
    found = []
    for part in algorithm.parts:
        groups = ", ".join(map(str, part.groups))
        label = f"{part.source or part.label}, parameter group{'s' if len(part.groups) > 1 else ''} {groups}"
        found.append(NamedMethod(label, part.method, part.departures, part.notes, part.horizon))
    return tuple(found)
