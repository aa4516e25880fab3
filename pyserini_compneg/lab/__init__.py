"""The lab: experiments and training. It uses only public names of the engine, like any user."""
