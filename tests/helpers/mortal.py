"""Processes that kill themselves at a given step, for tests of what a kill leaves behind."""

import os
import signal


def make_mortal(places, steps):
    """Counts a step before and one after each call of some functions; the process is killed at the last one.

    Args:
        places: Pairs of an object and the names of its functions.
        steps: The step to die at; 0 for never.

    Returns:
        What gives the steps that are left.
    """
    left = [steps]

    def step():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def mortal(function):
        def call(*arguments, **options):
            step()
            result = function(*arguments, **options)
            step()
            return result

        return call

    for place, names in places:
        for name in names:
            setattr(place, name, mortal(getattr(place, name)))
    return lambda: left[0]
