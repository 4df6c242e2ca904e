"""Which parameters a server honours, and in which reading, by few requests whose answers are known beforehand.

Each part asks with a Collector and judges from the records alone."""

from . import answers, beams, duels, ends, names, structure, unlisted, values

PARTS = (unlisted, duels, ends, answers, structure, beams, values, names)
