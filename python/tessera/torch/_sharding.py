"""How DTensor may divide the ops among devices: by batch and by heads, without communication."""

from . import _op


def _list_placements(q, k, alibi, outputs):
    """(placements of the outputs, of the inputs and None for what is no tensor) that are right."""
    from torch.distributed.tensor import Replicate, Shard

    def alike(placement, of_slopes):
        slopes = None if alibi is None else of_slopes
        return [placement] * outputs, [placement, placement, placement, slopes]

    placements = [alike(Replicate(), Replicate()), alike(Shard(0), Replicate())]
    # Each device has whole groups of heads, those that read one head of k.
    if all(k.shape[1] % size == 0 for size in q.mesh.shape):
        placements.append(alike(Shard(1), Shard(0)))
    return placements


def register_sharding() -> None:
    """Lets DTensors go into the ops: sharded by batch or by heads they stay so, without communication. Call it once;
    it imports torch.distributed.tensor."""
    from torch.distributed.tensor.experimental import register_sharding as register

    for op, outputs in ((_op.forward, 2), (_op.inference, 1)):

        def rule(q, k, v, alibi, *others, outputs=outputs, **named):
            return _list_placements(q, k, alibi, outputs)

        register(op)(rule)
