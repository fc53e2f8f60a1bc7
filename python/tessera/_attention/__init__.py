"""Which kernels compute an attention and its gradients, and what calls launch, for all frameworks alike. Nothing here knows an array of
a framework."""
