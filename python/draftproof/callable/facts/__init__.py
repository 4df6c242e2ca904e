"""What is said of a failure: its needs, an explanation that predicts, or what was measured."""
