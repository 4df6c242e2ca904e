"""Driving a sampler, a filter or a verifier that is somebody else's: cases, calls, judgements, shrinking."""
