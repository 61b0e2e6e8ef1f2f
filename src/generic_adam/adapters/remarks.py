"""The sentences about what the theorem does not cover that several adapters say."""


def start_and_epsilon(start: float, epsilon: float) -> str:
    """How the optimizer keeps v away from 0, against how the theorem does."""
    added = f"v_0 = {start:g} and eps = {epsilon:g} is added to sqrt(v_t)"
    return f"{added}; the theorem has v_0 > 0 and adds nothing"


def decoupled_decay(weight_decay: float) -> str:
    """Weight decay that moves x apart from the gradient."""
    return f"decoupled weight decay of {weight_decay:g}: the theorem has no such term"


def decay_in_gradient(weight_decay: float) -> str:
    """Weight decay that is added to the gradient, which changes the loss and not the algorithm."""
    term = f"the loss plus {weight_decay / 2:g} ||x||^2"
    return f"weight decay of {weight_decay:g} in the gradient: the certificate is about {term}"


FACTORED = "second moments of matrices are factored into rows and columns; the certificate is for full ones"


def clipped_updates(threshold: float) -> str:
    """Updates that are scaled down where their root mean square is above a threshold."""
    return f"updates are clipped to a root mean square of {threshold:g}"
