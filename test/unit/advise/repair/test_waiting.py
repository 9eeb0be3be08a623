"""The order of a search, on states whose prices are known."""

from shardpass.advise.repair.waiting import PATIENCE, State, Waiting


def behind(state: State, name: str, regret: float) -> State:
    return State({}, (*state.edits, name), {}, state.regret + regret, state)


def waiting(*states: State) -> Waiting:
    made = Waiting()
    for one in states:
        made.add(one)
    return made


START = State()


def test_the_cheapest_edit_first_until_there_is_a_program() -> None:
    a, b = behind(START, "a", 2.0), behind(START, "b", 1.0)
    queue = waiting(a, b)
    assert queue.next() is b
    c = behind(b, "c", 0.5)
    queue.add(c)
    assert queue.next() is c  # 1.5 is less than 2
    assert queue.next() is a
    assert not queue


def test_of_equal_regret_the_state_with_most_edits() -> None:
    a, b = behind(START, "a", 0.0), behind(START, "b", 0.0)
    queue = waiting(a, b)
    assert queue.next() is a
    deeper = behind(a, "c", 0.0)
    queue.add(deeper)
    assert queue.next() is deeper


def test_each_first_edit_gets_a_program() -> None:
    a, b = behind(START, "a", 0.0), behind(START, "b", 3.0)
    queue = waiting(a, b)
    assert queue.next() is a
    other = behind(a, "d", 0.0)
    queue.add(other)
    queue.reached(a, 9.0)
    assert queue.follows_first_edits
    assert queue.next() is b
    queue.reached(b, 5.0)
    assert not queue.follows_first_edits
    assert queue.next() is other


def test_then_around_the_best_program() -> None:
    a, b = behind(START, "a", 0.0), behind(START, "b", 1.0)
    queue = waiting(a, b)
    queue.next()
    queue.next()
    queue.reached(behind(a, "c", 0.0), 9.0)
    queue.reached(behind(b, "c", 0.0), 5.0)
    cheap, near = behind(a, "d", 0.1), behind(b, "d", 2.0)  # estimated as 9.1 and 7
    queue.add(cheap)
    queue.add(near)
    assert queue.next() is near


def test_a_first_edit_that_costs_more_than_the_best_program_is_not_followed() -> None:
    a, b = behind(START, "a", 0.0), behind(START, "b", 6.0)
    queue = waiting(a, b)
    queue.next()
    queue.reached(a, 5.0)
    assert not queue.follows_first_edits


def test_a_first_edit_without_a_program_is_given_up() -> None:
    a, b = behind(START, "a", 0.0), behind(START, "b", 0.0)
    queue = waiting(a, b)
    queue.reached(queue.next(), 5.0)
    state = b
    for number in range(PATIENCE):
        assert queue.follows_first_edits
        assert queue.next() is state
        state = behind(state, str(number), 0.0)
        queue.add(state)
    assert not queue.follows_first_edits
