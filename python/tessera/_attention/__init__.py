"""Which kernels compute an attention, a recurrence and their gradients, and what calls launch, for all frameworks alike. Nothing here
knows an array of a framework."""
