"""How it is asked: calls, their time, and the code that makes them again."""
