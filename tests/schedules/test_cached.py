import threading

from generic_adam.schedules.cached import cached_attribute


class Node:
    """Two attributes that ask for those of another node."""

    def __init__(self):
        self.other, self.computed, self.meet = self, 0, None

    @cached_attribute
    def order(self):
        """The order."""
        self.computed += 1
        if self.meet is not None:
            self.meet.wait(timeout=10)
            return self.other.base, object()
        return self.computed

    @cached_attribute
    def base(self):
        """The base."""
        return object()


def test_the_first_value_is_kept_in_the_instance():
    node, fresh = Node(), Node()
    assert (node.order, node.order, node.computed) == (1, 1, 1)
    assert "order" not in vars(fresh)
    assert Node.order.__doc__ == "The order."


def test_two_threads_compute_at_once_and_see_one_value():
    one, two = Node(), Node()
    one.other, two.other = two, one
    one.meet = two.meet = threading.Barrier(2)  # each is inside `order` while the other one is
    seen = []
    threads = [threading.Thread(target=lambda n=node: seen.append(n.order)) for node in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert [thread.is_alive() for thread in threads] == [False, False]
    assert {id(value) for value in seen} == {id(one.order), id(two.order)}
