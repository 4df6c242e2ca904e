"""Which parameters a server honours, and in which reading, by few requests whose answers are known beforehand.

Each part asks with a Collector and judges from the records alone. Parts of few requests come first: a slow server
answers those within the time."""

from . import answers, beams, duels, ends, names, structure, unlisted, values

PARTS = (unlisted, names, values, answers, duels, ends, structure, beams)
