import pytest
from engine.sampler import sample


@pytest.mark.draftproof(kind="sample", tv=0.1)
def test_the_sampler_draws_from_the_distribution_that_it_claims(draftproof_audit):
    draftproof_audit(sample)
