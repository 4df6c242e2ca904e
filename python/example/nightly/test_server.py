def test_the_server_draws_from_the_distribution_that_its_logprobs_state(draftproof_server):
    draftproof_server(time_s=120, tokens=100000)


def test_speculation_is_lossless(draftproof_server):
    draftproof_server(only=("speculation",), time_s=120)
