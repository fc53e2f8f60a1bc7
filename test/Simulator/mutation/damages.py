"""What written.py does to the text of a correct kernel."""

import re

WAIT = r"mbarrier\.try_wait\.parity\.shared::cta\.b64 done, \[%r\d+\], %r\d+;\n@!done bra again;"


def without(pattern, write="stmatrix"):
    """Removes every instruction after a write of the tile that matches, up to the next write."""

    def damage(text):
        parts = text.split(write)
        changed = [parts[0], *(re.sub(pattern, "", part, count=1) for part in parts[1:])]
        assert changed != parts, pattern
        return write.join(changed)

    return damage


def wait_less(text):
    """The operand is written while the product that reads it may be in flight."""
    changed = re.sub(r"wgmma\.wait_group\.sync\.aligned 0;", "wgmma.wait_group.sync.aligned 1;", text)
    assert changed != text
    return changed


def release_early(text):
    """A slot is given back while the copy still reads it."""
    changed = text.replace("cp.async.bulk.wait_group.read 0;", "")
    assert changed != text
    return changed


def read_late(text):
    """One more copy than there are places may still read them."""
    changed = text.replace("cp.async.bulk.wait_group.read 1;", "")
    assert changed != text
    return changed


def replaced(old, new):
    """The same with other text in one place at least."""

    def damage(text):
        changed = re.sub(old, new, text)
        assert changed != text, old
        return changed

    return damage


def without_last(instruction):
    """Leaves out the last of such instructions."""

    def damage(text):
        start = text.rindex(instruction)
        return text[:start] + text[text.index(";", start) + 1 :]

    return damage


def each_for_itself(text):
    """What all threads decide together each of them decides alone."""
    changed = re.sub(r"barrier\.cta\.red\.aligned\.or\.pred q, %r\d+, \d+, p;", "mov.pred q, p;", text)
    assert changed != text
    return changed


def half_of_role(text):
    """One warpgroup alone decides."""
    changed = re.sub(r"(barrier\.cta\.red\.aligned\.or\.pred q, %r\d+), 256, p;", r"\1, 128, p;", text)
    assert changed != text
    return changed


def without_role_barrier(number):
    """The threads of both warpgroups do not meet between two uses of the same elements."""

    def damage(text):
        barrier = list(re.finditer(r"bar\.sync\s+%r\d+, 256;", text))[number]
        return text[: barrier.start()] + text[barrier.end() :]

    return damage


def without_last_wait(text):
    """The producer loads into the last of its pipes without a look at the slot."""
    wait = list(re.finditer(WAIT, text))[-1]
    return text[: wait.start()] + text[wait.end() :]


#: The arrival of a role's first thread that gives a slot back.
GIVEN_BACK = re.compile(
    r"\tadd\.s32 \t(%r\d+), %r\d+, \d+;\n\t// begin inline asm\n\t\{\n\.reg \.pred leads;\n[^\n]*\n"
    r"@leads mbarrier\.arrive[^\n]*\[\1\];\n\}\n\t// end inline asm\n"
)  # fmt: skip


def give_back_early(text):
    """A slot is given back before it is read: the first arrival after a conversion comes before its first load."""
    found = GIVEN_BACK.search(text, text.index("st.shared.v4"))
    met = text.rindex("bar.sync", 0, found.start())
    load = text.index("ld.shared.v4", max(text.rfind("bar.sync", 0, met), 0))
    place = text.rindex("\t// begin inline asm", 0, load)
    return text[:place] + found[0] + text[place : found.start()] + text[found.end() :]


def give_back_untransposed(text):
    """A slot is given back before it is transposed: the first arrival after a transposition comes before its first load."""
    place = text.rindex("\t@%p", 0, text.index("ldmatrix"))  # lanes that transpose nothing jump over it
    found = GIVEN_BACK.search(text, text.index("fence.proxy.async"))
    assert found.end() < place
    return text[: found.start()] + text[found.end() : place] + found[0] + text[place:]


def give_back_unread(read="ldmatrix", site=slice(0, None)):
    """A slot is given back before what these reads take from it is in registers."""

    def damage(text):
        start, end = "\t// begin inline asm\n", "\t// end inline asm\n"
        arrival = re.compile(rf"\tadd\.s32 \t(%r\d+), %r\d+, \d+;\n{start}\tmbarrier\.arrive[^\n]*\[\1\];\n{end}")
        reads = [found.start() for found in re.finditer(re.escape(read), text)][site]
        first = text.rindex(start, 0, reads[0])
        found = arrival.search(text, reads[-1])
        return text[:first] + found[0] + text[first : found.start()] + text[found.end() :]

    return damage


def arrive_before_copies(text):
    """The threads hand a slot on before their copies have come."""
    changed = text.replace("cp.async.mbarrier.arrive.noinc.shared::cta.b64 ", "mbarrier.arrive.release.cta.shared::cta.b64 _, ")
    assert changed != text
    return changed


def without_wait(before, number=1, skipped=0):
    """Goes on without the last wait before the first `before`, behind as many as are skipped, or the one of this number from
    there."""

    def damage(text):
        parts = text.split(before)
        head, behind = before.join(parts[: skipped + 1]), before.join(parts[skipped + 1 :])
        place = len(head)
        for _ in range(number):
            place = head.rindex("@!done bra again;", 0, place)
        return head[:place] + head[place:].replace("@!done bra again;", "", 1) + before + behind

    return damage


def without_wait_behind(after):
    """Goes on without the first wait behind the first `after`."""

    def damage(text):
        place = text.index(after)
        return text[:place] + text[place:].replace("@!done bra again;", "", 1)

    return damage


#: A copy to the other block of a cluster.
SENT = r"cp\.async\.bulk\.shared::cluster\.shared::cta\.mbarrier::complete_tx::bytes[^;]*;"


def not_expected(text):
    """A block does not wait for what the other one sends."""
    place = text.index("mbarrier.arrive.expect_tx", re.search(SENT, text).end())
    arrival = re.compile(r"mbarrier\.arrive\.expect_tx\.release\.cta\.shared::cta\.b64 _, (\[%r\d+\]), %r\d+;")
    found = arrival.match(text, place)
    return text[:place] + f"mbarrier.arrive.release.cta.shared::cta.b64 _, {found[1]};" + text[found.end() :]


def to_one_block(text):
    """The reducers give slots back to the first block alone."""
    changed = re.sub(r"setp\.lt\.u32 signals, (%r\d+), 2;", r"setp.lt.u32 signals, \1, 1;", text)
    assert changed != text
    return changed


def early_to_one_block(text):
    """A reducer gives a slot back to the second block while its product reads it, and to the first one behind that."""
    given = re.search(r"\{\n\.reg \.pred signals;\nsetp\.lt\.u32 signals, (%r\d+), 2;\n[^}]*\}", text)
    place = text.rindex("wgmma.wait_group", 0, given.start())
    once = [given[0].replace(f"lt.u32 signals, {given[1]}, 2", f"eq.u32 signals, {given[1]}, {block}") for block in (1, 0)]
    return text[:place] + once[0] + "\n" + text[place : given.start()] + once[1] + text[given.end() :]
