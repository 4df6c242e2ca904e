"""Penalties and bias on lists of raw logprobs: the list that a server should have drawn from."""

from dataclasses import replace

from ..callable.cases.request_params import WHOLE, within
from .adapters import Step, Text
from .visible import Reading

HISTORIES = ("the output", "prompt and output", "the last 64 of prompt and output")


def counted(history: str, prompt: list[int], out: list) -> list:
    """Returns the tokens that penalties count under one reading."""
    prompt, out = within(prompt, out, 64 if history == HISTORIES[2] else WHOLE)
    return out if history == HISTORIES[0] else [*prompt, *out]


def penalised(text: Text, settings: dict, reading: Reading) -> Text:
    """Returns the text with each list after bias, presence and frequency penalties, best first.

    A token beyond a list is at most as probable as the list's last, so adjusted entries below that are left out. Bias
    stands before the temperature; penalties before it or behind it."""
    names = ("presence_penalty", "frequency_penalty", "logit_bias")
    presence, frequency, bias = (None if name == reading.ignored else settings.get(name) for name in names)
    if not presence and not frequency and not bias:
        return text
    unit = settings["temperature"] if reading.scaled else 1.0
    behind = settings["temperature"] if reading.penalties_last else 1.0
    presence, frequency = ((value or 0.0) * behind / unit for value in (presence, frequency))
    bias = {int(token): value / unit for token, value in (bias or {}).items()}
    steps: list[Step] = []
    for position, at in enumerate(text.steps):
        seen = counted(reading.history, settings["prompt"], [step.token for step in text.steps[:position]])
        listed = [(key, value + bias.get(key, 0.0) - presence * (key in seen) - frequency * seen.count(key))
                  for key, value in at.top]
        least = at.top[-1][1] if at.top else 0.0
        lifted = [value for token, value in bias.items() if value > 0 and token not in dict(at.top)]
        floor = least + max([0.0, *lifted])
        steps.append(replace(at, top=sorted((pair for pair in listed if pair[1] >= floor), key=lambda pair: -pair[1])))
    return replace(text, steps=steps)
