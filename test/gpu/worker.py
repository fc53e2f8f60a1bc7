"""The process that touches the GPU: runs the cases of some configurations and prints one JSON line for each
step, so that run.py knows what was going on when a kernel hangs or breaks the context."""

import json
import sys
import traceback

import cases
import kernels


def say(**message):
    print("@" + json.dumps(message), flush=True)


def is_fatal():
    """True when the CUDA context is unusable, as it is after a fault in a kernel."""
    import torch

    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").add_(1).item()
    except RuntimeError:
        return True
    return False


def run_configuration(number, configuration, source, options):
    """Runs everything of one configuration. Returns False when the process must end."""
    if configuration["kernel"] == cases.ATTENTION:
        import attention_check as checks

        todo = cases.attention_cases(options["mode"], configuration["group"])
    elif configuration["kernel"] == cases.VARIANTS:
        import attention_check as checks

        todo = cases.variant_cases(options["mode"], configuration["parameters"])
    else:
        import gemm_check as checks

        todo = cases.gemm_cases(options["mode"])
    say(begin=number, case="loading")
    try:
        kernel = source.load(configuration)
        kernel.prepare(0)
    except kernels.Missing as error:
        say(skipped=number, reason=str(error))
        return True
    except kernels.Refused as error:
        say(refused=number, reason=str(error))
        return True
    except Exception as error:
        say(failed=number, case="loading", problems=[f"{type(error).__name__}: {error}"])
        return not is_fatal()

    probed = False
    for seed, case in enumerate(todo):
        say(begin=number, case=case)
        try:
            share, problems = checks.check(kernel, configuration, case, seed)
            if problems and not probed:
                probed = True
                problems += list(checks.probes(kernel, configuration, case))
        except Exception as error:
            say(failed=number, case=case, problems=[f"{type(error).__name__}: {error}",
                traceback.format_exc(limit=-2).strip()])  # fmt: skip
            if is_fatal():
                return False
            continue
        if problems:
            say(failed=number, case=case, problems=problems)
        else:
            say(passed=number, case=case, share=share)
    if options["repetitions"]:
        say(begin=number, case="repetition")
        try:
            problems = checks.check_repetition(kernel, configuration, options["repetitions"], 1)
            if configuration["kernel"] == cases.ATTENTION:
                problems += checks.check_dependent(kernel, configuration, 9, 1)
        except Exception as error:
            say(failed=number, case="repetition", problems=[f"{type(error).__name__}: {error}"])
            return not is_fatal()
        if problems:
            say(failed=number, case="repetition", problems=problems)
        else:
            say(passed=number, case="repetition", share=0.0)
    say(done=number)
    return True


def main():
    options = json.loads(sys.stdin.read())
    say(begin=None, case="starting PyTorch")
    import torch

    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    properties = torch.cuda.get_device_properties(0)
    torch.zeros(1, device="cuda").item()
    source = kernels.open_source(options["bundles"])
    say(device=properties.name, torch=torch.__version__)
    for number, configuration in options["configurations"]:
        if not run_configuration(number, configuration, source, options):
            sys.exit(3)


if __name__ == "__main__":
    main()
