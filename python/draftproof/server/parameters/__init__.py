"""Which parameters a server honours, and in which reading, by few requests whose answers are known beforehand.

Each part asks with a Collector and judges from the records alone."""

from . import answers, duels, ends, names, structure, values

PARTS = (duels, ends, answers, structure, values, names)
