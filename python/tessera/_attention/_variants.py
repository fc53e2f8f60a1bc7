"""Which kernel computes an attention: named by text, so that graphs of a framework mean the same in another process."""

import functools
import json
import math
import operator
import threading
import warnings

from .._compiler import _choices, _compile, _frontend
from .._compiler._program import Program, find_fact
from .._core import _classes, _library, _wheel
from .._core._errors import raise_problem
from .._functions import _variant
from .._functions._variant import keeps_lists, read_lists, takes_batch, takes_lists

#: Widths of tiles. Head dimensions between them take the next one, whose other columns no tensor has.
WIDTHS = (64, 96, 128, 192, 256)
#: Those of the sources of the forward pass that a name says.
FORWARD_WIDTHS = (64, 96, 128, 160, 192, 256, 512)
# Of the kernels, in the sources: requires(scale > 1.0e-30).
LEAST_SCALE = 1e-30
# Scores divided by it are of float32, and so is what it is multiplied with.
LEAST_CAP, LARGEST_CAP = 1e-30, 1e30
#: A window that does not end.
UNLIMITED = -1

# Shapes whose kernel is remembered before remembering starts afresh.
MAX_SHAPES = 4096
DEFAULT_CLASS = _wheel.DEFAULT_CLASS
_CLASSES = tuple(f"{tiles}-{loop}" for tiles in ("few", "many") for loop in ("short", "medium", "long"))


# No index comes near, and kernels add it to one.
_FARTHEST = 2**30


def _read_bound(bound, name):
    # Of a SymInt of torch `operator.index` would make a constant.
    if not (bound is None or isinstance(bound, int) or type(bound).__name__ == "SymInt"):
        try:
            bound = operator.index(bound)
        except TypeError:
            raise TypeError(f"argument '{name}' has a bound of {bound!r}; it is an integer, or None for all") from None
    return None if bound is None or bound < 0 or bound >= _FARTHEST else bound


def read_window(causal, window, name="window"):
    """(left, right) of a mask with None for no bound. `name` is that of the argument."""
    if window is None:
        return None, 0 if causal else None
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise ValueError(f"argument '{name}' is {window!r}; it is (left, right)")
    left, right = (_read_bound(bound, name) for bound in window)
    return left, 0 if causal else right


def name_mask(left, right):
    """The parameter MASK of the variant for a window."""
    if left is None and right is None:
        return "none"
    return "causal" if left is None and isinstance(right, int) and right == 0 else "window"


def name_variant(mask, softcap, alibi):
    """The text of a variant: a source that ships with the package, and its parameters beyond types and sizes."""
    if mask != "window" and not softcap and not alibi:
        return f"attention_fwd CAUSAL={'true' if mask == 'causal' else 'false'}"
    fields = [f"MASK={mask}"]
    if softcap:
        fields.append("SOFTCAP=exact")
    if alibi:
        fields.append("ALIBI=true")
    return " ".join(["attention_variants", *fields])


# What kernels take for parameters of these values, in this order.
_EXTRAS = {"MASK": ("window", ["left", "right"]), "SOFTCAP": ("exact", ["softcap"]), "ALIBI": ("true", ["alibi"])}


def list_extras_of(parameters):
    return [name for field, (value, names) in _EXTRAS.items() if parameters.get(field) == value for name in names]


def list_extras(text):
    """The names of what the kernel of a named variant takes after its scale."""
    return list_extras_of(dict(field.split("=", 1) for field in text.split()[1:]))


def is_source(text):
    """Whether the text of a variant is that of a source, as tessera.Variant writes it, and no name."""
    return "\n" in text


#: score_mod, score_args, mask_mod and mask_args where there are none.
NO_MODS = None, (), None, ()


def check_block_mask(mask_mod, B, H, Q_LEN, KV_LEN):
    """Refuses arguments that are none of create_block_mask."""
    for name, extent in (("B", B), ("H", H), ("Q_LEN", Q_LEN), ("KV_LEN", KV_LEN)):
        if (extent is None and name in ("B", "H")) or (isinstance(extent, int) and extent >= 1):
            continue
        what = "a number from 1 on" + (" or None" if name in ("B", "H") else "")
        raise ValueError(f"argument '{name}' is {extent!r}; it is {what}")
    if mask_mod is None:
        raise TypeError("argument 'mask_mod' is None; it is a function: without one attention needs no block_mask")


def check_batch_and_heads(source, batch, heads):
    """Refuses lists for any number of batches or heads where the mask of a source takes these."""
    needs_batch, needs_head = takes_lists(source) and takes_batch(source), read_lists(source) == "head"
    for name, what, extent, needed in (("B", "batch", batch, needs_batch), ("H", "head", heads, needs_head)):
        if needed and extent is None:
            raise ValueError(f"argument '{name}' is None, and the mask takes the {what}: there are lists for each; give it")


def check_extents(own, given):
    """Refuses batches, heads, queries and keys of a call for which the lists of a block mask are not."""
    for extent, listed, what in zip(given, own, ("batches", "heads", "queries", "keys")):
        if listed is not None and extent != listed:
            raise ValueError(f"argument 'block_mask' has lists for {listed} {what}, and the call has {extent}: create one for these")


def check_layout(layout):
    if layout not in ("BHSD", "BSHD"):
        raise ValueError(f"argument 'layout' is {layout!r}; it is 'BHSD' or 'BSHD'")


def find_head_problem(name, size, most=WIDTHS[-1], what="attention"):
    """What keeps kernels from taking a head dimension, or None. The copy engine moves 16 bytes at a time."""
    if size % 8 == 0 and 0 < size <= most:
        return None
    hint = ": pad it with zeros and give `scale`" if size < most else ""
    return ValueError(f"argument '{name}' has head dimension {size}; {what} takes multiples of 8 up to {most}{hint}")


#: What `attention` calls its tensors, slopes and the scale.
NAMES = "q", "k", "v", "alibi", "scale"


def find_mismatch(q, k, v, alibi, layout="BHSD", names=NAMES):
    """What keeps every kernel from taking tensors of these shapes, four sizes each in the order of `layout`, together
    with slopes, an array or None: an exception, or None. `names` are those of the arguments."""
    of_head, of_row = (1, 2) if layout == "BHSD" else (2, 1)
    of_q, of_k, of_v, of_alibi, *_ = names
    for name, shape, dim, of, other, what in (
        (of_k, k, 0, of_q, q, "batch"), (of_v, v, 0, of_q, q, "batch"), (of_k, k, 3, of_q, q, "head dimension"),
        (of_v, v, of_head, of_k, k, "number of heads"), (of_v, v, of_row, of_k, k, "length"),
    ):  # fmt: skip
        if shape[dim] != other[dim]:
            return ValueError(
                f"argument '{name}' has {what} {shape[dim]} and '{of}' {other[dim]}; they must be equal"
            )
    heads, key_heads = q[of_head], k[of_head]
    if not key_heads or heads % key_heads:
        return ValueError(f"argument '{of_q}' has {heads} heads, which is no multiple of the {key_heads} heads of '{of_k}'")
    if alibi is not None and not (str(alibi.dtype).endswith("float32") and tuple(alibi.shape) == (heads,)):
        return ValueError(
            f"argument '{of_alibi}' is {alibi.dtype} of shape {tuple(alibi.shape)}; attention takes one float32 slope for "
            f"each of the {heads} heads"
        )
    return None


def find_sinks_problem(sinks, heads):
    """What keeps kernels from taking an array as sinks of heads, as an exception, or None."""
    if str(sinks.dtype).rpartition(".")[2] in ("float32", "float16", "bfloat16") and tuple(sinks.shape) == (heads,):
        return None
    return ValueError(
        f"argument 'sinks' is {sinks.dtype} of shape {tuple(sinks.shape)}; attention takes one number for each of the {heads} heads, "
        "of float32, float16 or bfloat16"
    )


def find_width(name, size, widths=WIDTHS):
    what = "attention" if widths is FORWARD_WIDTHS else "attention with functions of scores"
    raise_problem(find_head_problem(name, size, widths[-1], what))
    return next(width for width in widths if size <= width)


class Variant:
    """The kernels of one variant (the name of a source with parameters, or the text of a source), element type ("f16",
    "bf16"), widths of tiles and GPU, None for any: one for each class of shapes, which has the alternatives that the source
    declares."""

    def __init__(self, text, element_type, d, dv, padded, lse, card=None):
        self._is_written = is_source(text)
        if self._is_written:
            self.source, self.parameters = text, {}
        else:
            name, *fields = text.split()
            self.source = _library.find_source(name)
            self.parameters = dict(field.split("=", 1) for field in fields)
        self.parameters.update(T=element_type, D=d, DV=dv)
        # Named where they differ from what the sources have, so that a kernel has one key in the cache.
        if padded:
            self.parameters["PADDED"] = True
        if not lse:
            self.parameters["LSE"] = False
        chosen, self._schedule = _choices.choose_for_card(self.source, self.parameters, card)
        self.parameters.update(chosen)
        #: The tensors' head dimensions are extents of a launch.
        self.is_padded = padded
        # Where lists are arguments the source has kernels that make them too.
        self._kernel = "attention" if keeps_lists(self.source) else None
        self._given = dict(self.parameters)
        #: Names of arguments after q, k, v, o, lse (if it is stored) and scale.
        self.extras = [] if self._is_written else list_extras(text)
        self._kernels, self._pending, self._lock = {}, set(), threading.Lock()

    @functools.cached_property
    def program(self):
        """The interpreter's form."""
        return Program(self.source, self._kernel, **self._given)

    @functools.cached_property
    def _classified(self):
        """What classes of shapes are told from."""
        # What takes lists of blocks is a sequence, and its attention has the classes of that without.
        if self._is_written and takes_lists(self.source):
            return Program(self.source, **self._given, VISITS="interval")
        return self.program

    @functools.cached_property
    def _class_rules(self):
        """The rule of the class of all shapes, if there is one: of each, of which there may be very many, nothing is kept."""
        details = [self._kernel, _frontend.to_texts(self._given)]
        rule = find_fact("class", self.source, details, lambda: self._classified.shape_rule)
        return [json.loads(rule)] if rule else []

    def _find_class(self, shape):
        for rule in self._class_rules:
            return _classes.find(rule, shape)
        return self._classified.shape_class(**shape)

    def compile(self, shape_class):
        """The kernel of a class; waits for the compiler where it is not there yet."""
        kernel = self._kernels.get(shape_class)
        if kernel is None:
            kernel = self._kernels[shape_class] = self._compile(shape_class)
        return kernel

    def _compile(self, shape_class):
        named = {"kernel": self._kernel, "schedule": self._schedule, "shape_class": shape_class, "alternatives": True}
        return _compile.compile(self.source, **named, **self.parameters)

    def find(self, shape):
        """(kernel, whether it is that of the shape's class). A class that is not there yet is compiled beside the
        program, if there is another."""
        shape_class = self._find_class(shape)
        kernel = self._kernels.get(shape_class)
        if kernel is not None:
            return kernel, True
        if shape_class in self._pending:
            return next(iter(self._kernels.values())), False
        kernel = self._find_in_wheel(shape_class)
        if kernel is not None:
            self._kernels[shape_class] = kernel
            return kernel, True
        if not self._kernels:
            # That of the package for most shapes does for the time being.
            kernel = self._find_in_wheel(DEFAULT_CLASS)
            if kernel is None:
                return self.compile(shape_class), True
            self._kernels[DEFAULT_CLASS] = kernel
        with self._lock:
            if shape_class not in self._pending:
                self._pending.add(shape_class)
                begin_aside(self._compile_aside, shape_class)
        return next(iter(self._kernels.values())), False

    def _find_in_wheel(self, shape_class):
        return None if self._schedule else _compile.find_in_wheel(self.source, shape_class, self.parameters)

    def _compile_aside(self, shape_class):
        try:
            self.compile(shape_class)
        except Exception as error:
            other = next(iter(self._kernels.values()))
            self._kernels[shape_class] = other
            warnings.warn(f"shapes of class '{shape_class}' go on with a kernel for others: {error}", RuntimeWarning)

    def compile_all(self):
        for shape_class in _CLASSES:
            self.compile(shape_class)


_executor, _last = None, None
_variants, _by_sizes, _lock = {}, {}, threading.Lock()


def describe_widths(d, dv):
    """The parameters of sources for head dimensions d and dv."""
    d_width, dv_width = (next(width for width in WIDTHS if size <= width) for size in (d, dv))
    return {"D": d_width, "DV": dv_width, "PADDED": (d_width, dv_width) != (d, dv)}


def read_number(value):
    """A number as Python has it, None of what is none."""
    try:
        return None if isinstance(value, str) else float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def find_scale_problem(scale, name="scale"):
    """What keeps kernels from taking a scale, or None. They multiply infinity with it, and find the largest score before.
    `name` is that of the argument."""
    number = read_number(scale)
    if number is None:
        return TypeError(f"argument '{name}' is {scale!r}; it is a number above 0, or None")
    if LEAST_SCALE < number < 2.0**128:
        return None
    hint = ": negate q" if number < 0 else ""
    return ValueError(f"argument '{name}' is {scale}; kernels take a number above {LEAST_SCALE}, which float32 has{hint}")


def read_softcap(softcap):
    """A bound of scores, 0 for none. Kernels divide by it, and multiply with it what is at most 1 in float32."""
    if softcap is None:
        return 0.0
    bound = read_number(softcap)
    if bound is None:
        raise TypeError(f"argument 'softcap' is {softcap!r}; it is a number, 0 for none")
    if bound and not LEAST_CAP <= bound <= LARGEST_CAP:
        raise ValueError(f"argument 'softcap' is {bound}; it is 0 for none, or a number from {LEAST_CAP} to {LARGEST_CAP}")
    return bound


def check_scale(scale):
    raise_problem(find_scale_problem(scale))


def check_functions(variant, arguments, mods, scale, others):
    """Refuses arguments of an attention that do not go together with functions of scores and masks: those of a variant, or
    `mods`, (score_mod, score_args, mask_mod, mask_args). `others` are further arguments by name."""
    if variant is not None and not isinstance(variant, _variant.Variant):
        raise TypeError(f"argument 'variant' is of type {type(variant).__name__}; it is a tessera.Variant")
    if variant is None and arguments is not None:
        raise ValueError("argument 'arguments' is given without a variant, whose functions would take them")
    if variant is not None and mods != (None, (), None, ()):
        raise ValueError("arguments 'score_mod' and 'mask_mod' are given with a variant, which has functions of its own")
    for name, value in others.items():
        if value is not None and value is not False and not (name == "softcap" and value == 0):
            raise ValueError(f"argument '{name}' is given with functions of scores and masks; let these say it")
    if scale is not None:
        check_scale(scale)


def begin_aside(function, *arguments, **named):
    """The future of a call by the one thread that compiles beside the program."""
    global _executor, _last
    with _lock:
        if _executor is None:
            from concurrent.futures import ThreadPoolExecutor  # It takes long to import, and few processes need it.

            _executor = ThreadPoolExecutor(1, thread_name_prefix="tessera-compile")
        _last = _executor.submit(function, *arguments, **named)
        return _last


def finish_aside():
    """Waits for all that was begun beside the program. Whether there was any since the last time."""
    global _last
    with _lock:
        last, _last = _last, None
    if last is not None:
        last.exception()
    return last is not None


def find_variant(text, element_type, d, dv, lse=True, card=None):
    """The variant for tensors of head dimensions d and dv; `lse`: with the LSE as a result."""
    known = WIDTHS if is_source(text) else FORWARD_WIDTHS
    widths = find_width("q", d, known), find_width("v", dv, known)
    key = (text, element_type, *widths, widths != (d, dv), lse, card)
    variant = _variants.get(key)
    if variant is None:
        variant = _variants.setdefault(key, Variant(text, element_type, *widths, widths != (d, dv), lse, card))
    return variant


def find_kernel(text, element_type, sizes, lse=True, card=None):
    """(kernel, names of its extra arguments, whether that is final) for sizes B, H, SQ, D, HK, SK, DV, and a GPU or any."""
    found = _by_sizes.get((text, element_type, sizes, lse, card))
    if found is not None:
        return found
    batch, heads, rows, d, kv_heads, keys, dv = sizes
    variant = find_variant(text, element_type, d, dv, lse, card)
    shape = {"B": batch, "H": heads, "SQ": rows, "HK": kv_heads, "SK": keys}
    kernel, is_final = variant.find({**shape, "DQ": d, "DO": dv} if variant.is_padded else shape)
    found = kernel, variant.extras, is_final
    if is_final:
        if len(_by_sizes) >= MAX_SHAPES:
            _by_sizes.clear()
        _by_sizes[(text, element_type, sizes, lse, card)] = found
    return found
