"""What came against what should: bets, judgements, readings."""
