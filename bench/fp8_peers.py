"""What attention of 8-bit numbers is measured against. A maker takes a `fp8.Problem` and returns a function that runs the
peer, and one that gives the error of its result, or None where it writes `problem.o`."""

import ctypes
import functools
import os

import peers

NAMES = ("fa3", "cudnn")


def makers(directory):
    return {"fa3": functools.partial(fa3, directory=directory), "cudnn": cudnn}


def fa3(problem, directory):
    """FlashAttention-3 as shared objects, as peers.fa3_library calls them, with the scales of each head; it writes problem.o."""
    import torch

    point = problem.point
    path = os.path.join(directory or "", f"fa3_fwd_d{point.d}_c{int(problem.causal)}_fp81.so")
    if not directory or not os.path.exists(path):
        raise peers.Unavailable(f"no {path}")
    function = ctypes.CDLL(os.path.abspath(path)).fa3_fwd
    lse, semaphore = torch.empty_like(problem.lse), torch.zeros(1024, dtype=torch.int32, device="cuda")
    one = torch.ones((point.batch, point.heads), device="cuda")
    scales = [one, one, one * problem.v_scale]
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    pointers = [ctypes.c_void_p(x.data_ptr()) for x in (problem.q, problem.k, problem.v, problem.o, lse)]
    of_scales = [ctypes.c_void_p(x.data_ptr()) for x in scales]

    def run():
        if problem.causal:
            semaphore.zero_()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        function(*pointers, point.batch, point.seqlen, point.seqlen, point.heads, point.heads,
                 ctypes.c_float(problem.scale), multiprocessors, ctypes.c_void_p(semaphore.data_ptr()), *of_scales,
                 stream)  # fmt: skip
        return scales  # They live as long as the function.

    return run, None


def cudnn(problem):
    """cuDNN through its Python frontend, with scales of tensors, and O in e4m3 as a multiple of what makes its largest number 256."""
    import cudnn as frontend
    import torch

    point = problem.point
    handle = _handle(frontend)
    graph = frontend.pygraph(
        io_data_type=frontend.data_type.FP8_E4M3,
        intermediate_data_type=frontend.data_type.FLOAT,
        compute_data_type=frontend.data_type.FLOAT,
        handle=handle,
    )
    out = torch.empty_like(problem.q)
    statistics = torch.empty((point.batch, point.heads, point.seqlen, 1), device="cuda")
    one = torch.ones((1, 1, 1, 1), device="cuda")
    views = [x.transpose(1, 2) for x in (problem.q, problem.k, problem.v)]
    inputs = [graph.tensor(dim=list(x.shape), stride=list(x.stride()), data_type=frontend.data_type.FP8_E4M3) for x in views]
    scalar = {"dim": [1, 1, 1, 1], "stride": [1, 1, 1, 1], "data_type": frontend.data_type.FLOAT}
    # The scale of V, and what P and O are multiplied with before they are rounded, and after.
    names = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")
    largest = problem.expected.abs().max()
    values = {
        **dict.fromkeys(names, one),
        "descale_v": one * problem.v_scale,
        "descale_s": one / 256,
        "scale_s": one * 256,
        "scale_o": one * 256 / largest,
    }
    scales = {name: graph.tensor(**scalar) for name in names}
    outputs = graph.sdpa_fp8(
        *inputs, **scales, generate_stats=True, attn_scale=problem.scale, use_causal_mask=problem.causal
    )
    o, stats, *maxima = outputs
    view = out.transpose(1, 2)
    o.set_output(True).set_dim(list(view.shape)).set_stride(list(view.stride()))
    stats.set_output(True).set_data_type(frontend.data_type.FLOAT)
    for maximum in maxima:
        maximum.set_output(True).set_dim([1, 1, 1, 1]).set_stride([1, 1, 1, 1]).set_data_type(frontend.data_type.FLOAT)
    graph.build([frontend.heur_mode.A])
    workspace = torch.empty(max(1, graph.get_workspace_size()), device="cuda", dtype=torch.uint8)
    tensors = {
        **dict(zip(inputs, views)),
        **{scales[name]: values[name] for name in names},
        **{maximum: torch.empty_like(one) for maximum in maxima},
        o: view,
        stats: statistics,
    }
    pointers = {name: tensor.data_ptr() for name, tensor in tensors.items()}

    def run():
        frontend.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute(pointers, workspace.data_ptr(), handle=handle)
        return tensors  # They live as long as the function.

    return run, lambda: peers.relative_error(view.float() * largest / 256, problem.expected)


@functools.cache
def _handle(frontend):
    return frontend.create_handle()
