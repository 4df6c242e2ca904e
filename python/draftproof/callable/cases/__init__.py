"""What is asked: cases, and the regimes and rows of which they are made."""
