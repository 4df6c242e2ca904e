"""Driving a sampler, a filter or a verifier that is somebody else's: cases, calls, judgements, and what is said of a
failure.

audit_callable: the audit; auditor: its stages; outcome: its result and sentence; page: its report; beams: audits of
    beams.
cases: what is asked. regimes and rows, of which sample_cases, filter_cases, verify_cases, request_cases and
    constrained are made; sample_sweep and verify_sweep go once through all regimes; varied changes a case that failed;
    ranges: what a callable takes.
drive: how it is asked. drive makes a call; callee: what the callable takes and answers; schedule and profiles: how
    long; request_run drives whole requests, request_heeded and request_rows tell which parameters are read;
    reproducible: equal calls; row_forms: rows of other types; snippet: the code that shows a failure again.
evidence: what came against what should. evidence bets on draws; sample_judge, verify_judge, logprobs and request_ends
    judge a run; readings: which of the usual ones a callable has.
facts: what is said of a failure. failing asks, in this order: needs (which factors, seeds or earlier calls), predict
    (which deviation gives what came, and predicts other cases), described (what was measured where none does).
    grammar: deviations of rows, a site and what is used there instead; draws and steps apply it to what a sampler, a
    filter and a verifier do; chain: a verification with one thing wrong; numbers: random numbers; outputs: what the
    form of an output says; observed: what came, as rules see it.
"""
