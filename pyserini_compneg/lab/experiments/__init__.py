"""Experiments, which run whole collections through every operator."""
