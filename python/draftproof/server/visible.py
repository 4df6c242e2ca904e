"""Distributions that lists of logprobs make visible: what a server's own list says that it should draw from.

p(x) = softmax over the kept set of l(x) / T. Filters behind top_k <= length of the list need differences of raw
logprobs alone, so the unknown tail of the vocabulary does not matter."""

import math
from dataclasses import dataclass

from .adapters import PARAMETERS

SLACK = 0.01  # logits: noise of a server's arithmetic between list and draw; a cut nearer than that is ambiguous


@dataclass(frozen=True)
class Reading:
    """One order in which servers apply parameters."""

    temperature_first: bool = True
    top_p_of_kept: bool = True  # mass of top_p: of the top_k tokens, else of the whole vocabulary
    ignored: str = ""           # a parameter without effect
    scaled: bool = False        # lists are logprobs after the temperature
    history: str = "the output"  # tokens that penalties count, a name of HISTORIES
    penalties_last: bool = False  # behind the temperature

    def words(self) -> dict[str, str]:
        """Returns what each part of a reading says."""
        return {"order": "temperature first" if self.temperature_first else "temperature last",
                "top_p": f"top_p over {'the top_k tokens' if self.top_p_of_kept else 'all tokens'}",
                "penalties": f"penalties over {self.history}" + ", behind the temperature" * self.penalties_last}


READINGS = [Reading(first, kept) for first in (True, False) for kept in (True, False)]


@dataclass
class Visible:
    """Kept tokens with probabilities, best first; `generous` holds those that noise at the cut could also keep."""

    keys: list
    values: list[float]  # l / T of the kept tokens
    probs: list[float]
    generous: set
    ambiguous: bool
    shell: float         # probability of tokens that a cut 3 % smaller drops
    shell_keys: set
    rest: float = 0.0    # probability of all tokens beyond the list
    beyond: float = 0.0  # bound of it where its own is not seen: probabilities are then those of a token of the list


def resolution(values: list[float]) -> float:
    """Returns the largest decimal step that divides all values, 0 where there is none of 1e-6 or more."""
    for digits in range(7):
        scaled = [value * 10 ** digits for value in values]
        if all(abs(value - round(value)) < 1e-6 * max(1.0, abs(value)) for value in scaled):
            return 10.0 ** -digits
    return 0.0


def _tied(values: list[float], count: int, slack: float) -> int:
    """Returns a cut behind `count` tokens moved over those that noise could exchange: on with slack > 0, else back."""
    edge = values[count - 1] - slack
    while slack > 0 and count < len(values) and values[count] >= edge:
        count += 1
    while slack < 0 and count > 1 and count < len(values) and values[count - 1] + slack <= values[count]:
        count -= 1
    return count


def _kept(values: list[float], settings: dict, reading: Reading, slack: float, shrink: float = 1.0) -> int:
    """Returns how many of the sorted raw logprobs are kept; slack > 0 keeps more, shrink < 1 cuts 3 % earlier."""
    top_k, top_p, min_p, temperature = (settings[name] for name in ("top_k", "top_p", "min_p", "temperature"))
    count = len(values)
    if top_k > 0 and reading.ignored != "top_k":
        count = min(count, top_k)
        count = _tied(values, count, slack)
    scale = temperature if reading.temperature_first and reading.ignored != "temperature" else 1.0
    if min_p > 0 and reading.ignored != "min_p":
        cut = values[0] + scale * math.log(min_p) * shrink - slack
        count = max(1, sum(1 for value in values[:count] if value >= cut))
    if top_p < 1 and reading.ignored != "top_p":
        weights = [math.exp(value / scale) if scale == 1.0 else math.exp((value - values[0]) / scale)
                   for value in values]
        bounded = reading.top_p_of_kept and top_k > 0 and reading.ignored != "top_k"
        whole = sum(weights[:count]) if bounded else 1.0
        mass, wanted, number = 0.0, min(1.0, top_p * shrink + 0.25 * slack), 0
        while number < count and mass < wanted * whole:
            mass, number = mass + weights[number], number + 1
        count = _tied(values, max(1, number), slack)
    return count


def visible(top: list[tuple[object, float]], settings: dict, reading: Reading, step: float) -> Visible | None:
    """Returns the distribution that a list states, None where the list is too short to show it."""
    asked = settings["top_k"]
    if len(top) < 2 or (asked > 0 and len(top) < asked):
        return None
    slack = max(SLACK, 2 * step)
    values = [value * settings["temperature"] if reading.scaled else value for _, value in top]
    count = _kept(values, settings, reading, 0.0)
    wide, narrow = (_kept(values, settings, reading, side) for side in (slack, -slack))
    temperature = 1.0 if reading.ignored == "temperature" else settings["temperature"]
    scaled = [value / temperature for value in values[:count]]
    rest = beyond = 0.0
    if (asked <= 0 or reading.ignored == "top_k") and count == len(values):  # the tail of the list has a part
        tail = max(0.0, 1.0 - sum(math.exp(value) for _, value in top))
        power = 1.0 / temperature - 1.0
        if any(one.moves and settings.get(name) not in (one.neutral, None) and name != reading.ignored
               for name, one in PARAMETERS.items()):
            beyond = 1.0
        elif power == 0.0 or reading.scaled:
            rest = tail
        else:  # below T = 1 each of its tokens, l <= the list's last, has e^(l / T) <= e^l e^((1 / T - 1) last)
            bound = ((tail + step) * math.exp(power * values[-1]) / sum(math.exp(value) for value in scaled)
                     if power > 0 else 1.0)
            beyond = min(1.0, max(bound, 1e-300))
    weights = [math.exp(value - scaled[0]) for value in scaled]
    total = sum(weights) / (1.0 - rest) if rest < 1 else math.inf
    probs = [weight / total for weight in weights]
    inner = _kept(values, settings, reading, 0.0, 0.97)
    if settings["top_p"] >= 1 and settings["min_p"] <= 0 and 1 < count == asked:
        inner = count - 1
    return Visible([key for key, _ in top[:count]], scaled, probs, {key for key, _ in top[:wide]}, wide != narrow,
                   sum(probs[inner:]), {key for key, _ in top[inner:count]}, rest, beyond)
