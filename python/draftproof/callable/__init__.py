"""Driving a sampler, a filter or a verifier that is somebody else's: cases, calls, judgements, and what is said of a failure.

cases: regimes and rows of which sample_cases, filter_cases, verify_cases, request_cases and constrained are made; sample_sweep and
    verify_sweep go once through all regimes; varied changes a case that failed.
drive: drive calls the code, schedule and profiles say how long, ranges what it takes; audit_callable is the audit.
evidence: evidence bets on draws; sample_judge, verify_judge and filter_cases judge a run, logprobs, readings and reproducible the rest.
facts: of a failure, pairs says what it needs, dependence whether on seeds or earlier calls; hypotheses which wrong rule gives what came and
    predicts other cases (accounts: what came, as rules see it; row_, filter_, noise_, draw_, kept_ and step_hypotheses: the rules;
    step_likelihood: chain verification with one thing wrong), described what was measured where there is none.
outcome and snippet: the result, its sentence, and the code that shows the failure again.
"""
