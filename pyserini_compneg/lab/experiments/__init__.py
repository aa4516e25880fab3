"""Experiments: whole collections through every operator."""
