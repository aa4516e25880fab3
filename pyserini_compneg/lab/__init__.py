"""The lab: experiments and training. It uses the engine through its public names only, as any user would."""
