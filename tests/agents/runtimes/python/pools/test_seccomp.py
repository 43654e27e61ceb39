"""The filter of system calls, run by a small interpreter of classic BPF for every kind of processor."""

from __future__ import annotations

import errno
import struct

import pytest

from agents.runtimes.python.sandbox import seccomp

ALLOWED = 0
# linux/audit.h
X86_64, I386, AARCH64, ARM, RISCV64 = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028, 0xC00000F3
# asm/unistd.h of each, by the headers of Linux 6.1
CALLS = {
    "x86_64": """
        socket=41 socketpair=53 clone3=435 io_uring_setup=425 io_uring_enter=426
        io_uring_register=427 bpf=321 userfaultfd=323 keyctl=250 add_key=248 request_key=249
        perf_event_open=298 ptrace=101 process_vm_readv=310 process_vm_writev=311
        process_madvise=440 pidfd_getfd=438 kcmp=312 mount=165 umount2=166 pivot_root=155
        open_tree=428 move_mount=429 fsopen=430 fsconfig=431 fsmount=432 fspick=433
        mount_setattr=442 open_by_handle_at=304 prlimit64=302 setpriority=141 ioprio_set=251
        sched_setaffinity=203 sched_setscheduler=144 sched_setparam=142 sched_setattr=314 chroot=161
        clone=56 unshare=272 kill=62 sched_getaffinity=204 read=0
    """,
    "aarch64": """
        socket=198 socketpair=199 clone3=435 io_uring_setup=425 io_uring_enter=426
        io_uring_register=427 bpf=280 userfaultfd=282 keyctl=219 add_key=217 request_key=218
        perf_event_open=241 ptrace=117 process_vm_readv=270 process_vm_writev=271
        process_madvise=440 pidfd_getfd=438 kcmp=272 mount=40 umount2=39 pivot_root=41 open_tree=428
        move_mount=429 fsopen=430 fsconfig=431 fsmount=432 fspick=433 mount_setattr=442
        open_by_handle_at=265 prlimit64=261 setpriority=140 ioprio_set=30 sched_setaffinity=122
        sched_setscheduler=119 sched_setparam=118 sched_setattr=274 chroot=51 clone=220 unshare=97
        kill=129 sched_getaffinity=123 read=63
    """,
    "arm": """
        socket=281 socketpair=288 clone3=435 io_uring_setup=425 io_uring_enter=426
        io_uring_register=427 bpf=386 userfaultfd=388 keyctl=311 add_key=309 request_key=310
        perf_event_open=364 ptrace=26 process_vm_readv=376 process_vm_writev=377 process_madvise=440
        pidfd_getfd=438 kcmp=378 mount=21 umount2=52 pivot_root=218 open_tree=428 move_mount=429
        fsopen=430 fsconfig=431 fsmount=432 fspick=433 mount_setattr=442 open_by_handle_at=371
        prlimit64=369 setpriority=97 ioprio_set=314 sched_setaffinity=241 sched_setscheduler=156
        sched_setparam=154 sched_setattr=380 chroot=61 clone=120 unshare=337 kill=37
        sched_getaffinity=242 read=3
    """,
}
CALLS["riscv64"] = CALLS["aarch64"]
AUDIT = {"x86_64": X86_64, "aarch64": AARCH64, "arm": ARM, "riscv64": RISCV64}
HIGH = 1 << 32

UNKNOWN = """
    clone3 io_uring_setup io_uring_enter io_uring_register bpf userfaultfd keyctl add_key
    request_key perf_event_open
"""
FORBIDDEN = """
    ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp mount umount2
    pivot_root open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_by_handle_at
"""
OPEN = "chroot clone unshare kill sched_getaffinity read"
# call, arguments, verdict everywhere, verdict where processes of others are seen
TABLE: list[tuple[str, tuple[int, ...], int, int]] = [
    *((name, (), errno.ENOSYS, errno.ENOSYS) for name in UNKNOWN.split()),
    *((name, (1, 1, 1), errno.EPERM, errno.EPERM) for name in FORBIDDEN.split()),
    *((name, (1, 1, 1), ALLOWED, ALLOWED) for name in OPEN.split()),
    ("clone", (0x1000_0000,), ALLOWED, ALLOWED),  # CLONE_NEWUSER: browsers
    *(
        (call, arguments, verdict, verdict)
        for call in ("socket", "socketpair")
        for arguments, verdict in (
            ((17, 3, 0x300), errno.EPERM),  # AF_PACKET
            ((17, 2, 0x300), errno.EPERM),
            ((17, 3 | 0o4000 | 0o2000000, 3), errno.EPERM),
            ((17 | HIGH, 3, 3), errno.EPERM),  # the kernel looks at the low word alone
            ((2, 10, 3), errno.EPERM),  # SOCK_PACKET of AF_INET is a packet socket
            ((2 | 5 * HIGH, 10 | 0o4000 | 7 * HIGH, 3), errno.EPERM),
            ((44, 3, 0), errno.EPERM),  # AF_XDP
            ((2, 3, 1), errno.EPERM),  # SOCK_RAW
            ((10, 3, 58), errno.EPERM),
            ((2, 3 | 0o4000 | 0o2000000, 255), errno.EPERM),
            ((2 | HIGH, 3 | HIGH, 255), errno.EPERM),
            ((16, 3 | 0o2000000, 0), ALLOWED),  # AF_NETLINK: getaddrinfo
            ((16, 2, 4), ALLOWED),
            ((1, 1, 0), ALLOWED),
            ((1, 3, 0), ALLOWED),  # AF_UNIX takes SOCK_RAW for SOCK_DGRAM
            ((2, 1 | 0o2000000, 6), ALLOWED),
            ((2, 2, 1), ALLOWED),  # a ping socket, where the system allows it
            ((10, 2 | 0o4000, 17), ALLOWED),
            ((10, 5, 132), ALLOWED),
        )
    ),
    ("prlimit64", (0, 7, 1), ALLOWED, ALLOWED),
    ("prlimit64", (4711, 7, 0), ALLOWED, ALLOWED),  # only reads
    ("prlimit64", (4711, 7, 0x7FFF_0000), ALLOWED, errno.EPERM),
    ("prlimit64", (4711, 7, HIGH), ALLOWED, errno.EPERM),  # an address whose low word is 0
    ("prlimit64", (HIGH, 7, 1), ALLOWED, ALLOWED),
    ("prlimit64", (4711 + HIGH, 7, 1), ALLOWED, errno.EPERM),
    ("setpriority", (0, 0, 5), ALLOWED, ALLOWED),
    ("setpriority", (0, 4711, 5), ALLOWED, errno.EPERM),
    ("setpriority", (1, 0, 5), ALLOWED, ALLOWED),
    ("setpriority", (1, 4711, 5), ALLOWED, errno.EPERM),
    ("setpriority", (2, 0, 5), ALLOWED, errno.EPERM),  # all processes of the account
    ("setpriority", (2 + HIGH, 0, 5), ALLOWED, errno.EPERM),
    ("ioprio_set", (1, 0, 5), ALLOWED, ALLOWED),
    ("ioprio_set", (1, 4711, 5), ALLOWED, errno.EPERM),
    ("ioprio_set", (3, 0, 5), ALLOWED, errno.EPERM),
    *(
        line
        for name in ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
        for line in ((name, (0, 8, 1), ALLOWED, ALLOWED), (name, (4711, 8, 1), ALLOWED, errno.EPERM))
    ),
]


def verdict(
    lines: list[seccomp.Instruction], audit: int, number: int, arguments: tuple[int, ...] = ()
) -> int:
    """The errno of a call, 0 when it is allowed; an interpreter of the instructions that filters are made of."""
    words = [*arguments, *(0,) * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, audit, 0x7F00_1234, *words)
    accumulator, at = 0, 0
    while True:
        code, true, false, operand = lines[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:
            accumulator &= operand
        elif code in (0x15, 0x35):
            at += true if (accumulator == operand if code == 0x15 else accumulator >= operand) else false
        else:
            assert code == 0x06
            assert operand == 0x7FFF_0000 or operand >> 16 == 5
            return operand & 0xFFFF if operand >> 16 == 5 else ALLOWED


def numbers(machine: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (one.partition("=") for one in CALLS[machine].split())}


@pytest.mark.parametrize("machine", CALLS)
@pytest.mark.parametrize("shared", [False, True], ids=["own processes", "shared processes"])
def test_each_call_gets_its_verdict(machine: str, shared: bool) -> None:
    lines = seccomp.program(seccomp.ARCHITECTURES[machine], shared_processes=shared)
    calls = numbers(machine)
    wrong = [
        (name, arguments, found)
        for name, arguments, alone, beside in TABLE
        if (found := verdict(lines, AUDIT[machine], calls[name], arguments)) != (beside if shared else alone)
    ]
    assert not wrong
    for audit in {X86_64, I386, AARCH64, ARM, RISCV64, AUDIT[machine] ^ 0x4000_0000} - {AUDIT[machine]}:
        assert verdict(lines, audit, calls["read"]) == errno.ENOSYS


def test_x32_calls_are_refused() -> None:
    lines = seccomp.program(seccomp.ARCHITECTURES["x86_64"], shared_processes=False)
    for number in (0x4000_0000, 0x4000_0000 | 41, 0x4000_0000 | 521, 512, 521, 547, 0xFFFF_FFFF):
        assert verdict(lines, X86_64, number) == errno.ENOSYS, number
    for number in (0, 511, 548, 600):
        assert verdict(lines, X86_64, number) == ALLOWED, number
    arm = seccomp.program(seccomp.ARCHITECTURES["arm"], shared_processes=False)
    assert verdict(arm, ARM, 0x0F0005) == ALLOWED  # set_tls


def test_filter_is_one_that_the_kernel_takes() -> None:
    for kind in seccomp.ARCHITECTURES.values():
        lines = seccomp.program(kind, shared_processes=True)
        assert len(lines) <= 4096  # BPF_MAXINSNS
        for at, (code, true, false, operand) in enumerate(lines):
            assert 0 <= operand < HIGH
            assert max(true, false) <= 255
            assert at + 1 + max(true, false) < len(lines) or code == 0x06


@pytest.mark.parametrize(
    ("machine", "bits", "found"),
    [
        ("x86_64", 64, "x86_64"), ("x86_64", 32, ""), ("i686", 32, ""), ("aarch64", 64, "aarch64"),
        ("aarch64", 32, "arm"), ("armv7l", 32, "arm"), ("armv8l", 32, "arm"), ("armv6l", 32, "arm"),
        ("riscv64", 64, "riscv64"), ("ppc64le", 64, ""), ("aarch64_be", 64, ""), ("armv7b", 32, ""), ("s390x", 64, ""),
    ],
)  # fmt: skip
def test_table_is_that_of_the_process(
    monkeypatch: pytest.MonkeyPatch, machine: str, bits: int, found: str
) -> None:
    monkeypatch.setattr(seccomp.platform, "machine", lambda: machine)
    monkeypatch.setattr(seccomp.struct, "calcsize", lambda _: bits // 8)
    assert seccomp.architecture() is (seccomp.ARCHITECTURES[found] if found else None)
