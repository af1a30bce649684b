import { endianness } from 'node:os'
import type { ProgramProfile } from '@aworld-train/core'

/**
 * System calls that no program of a jail may make, each with its number on x64 and on arm64 (`asm/unistd_64.h`, `asm-generic/unistd.h`):
 * ways to more rights, to other processes' memory, to mounts and namespaces, and parts of the kernel with a record of errors.
 */
const refused: Readonly<Record<string, readonly [x64: number, arm64: number | null]>> = {
  acct: [163, 89],
  add_key: [248, 217],
  bpf: [321, 280],
  chroot: [161, 51],
  delete_module: [176, 106],
  finit_module: [313, 273],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fsopen: [430, 430],
  fspick: [433, 433],
  init_module: [175, 105],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  io_uring_setup: [425, 425],
  kcmp: [312, 272],
  kexec_file_load: [320, 294],
  kexec_load: [246, 104],
  keyctl: [250, 219],
  lookup_dcookie: [212, 18],
  modify_ldt: [154, null],
  mount: [165, 40],
  mount_setattr: [442, 442],
  move_mount: [429, 429],
  name_to_handle_at: [303, 264],
  nfsservctl: [180, 42],
  open_by_handle_at: [304, 265],
  open_tree: [428, 428],
  perf_event_open: [298, 241],
  personality: [135, 92],
  pidfd_getfd: [438, 438],
  pivot_root: [155, 41],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  ptrace: [101, 117],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  reboot: [169, 142],
  request_key: [249, 218],
  setns: [308, 268],
  swapoff: [168, 225],
  swapon: [167, 224],
  syslog: [103, 116],
  umount2: [166, 39],
  unshare: [272, 97],
  userfaultfd: [323, 282],
}

/**
 * System calls for memory that stands without a process that maps it, which only a control group counts, and for message queues, which
 * the kernel counts by user.
 */
const uncounted: Readonly<Record<string, readonly [x64: number, arm64: number]>> = {
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  mq_open: [240, 180],
  msgget: [68, 186],
  semget: [64, 190],
  shmget: [29, 194],
}

interface Architecture {
  /** The kernel's name of the architecture in a filter (`AUDIT_ARCH_…`). */
  readonly audit: number
  readonly socket: number
  readonly clone: number
  readonly clone3: number
  readonly ioctl: number
  readonly setsockopt: number
  /** Numbers from here on call the same system in another way: x32 on x64. */
  readonly foreignFrom: number | null
  /** Place of its numbers in the tables above. */
  readonly column: 0 | 1
}

/** Architectures that have a filter, as Node names them. */
export const architectures: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    socket: 41,
    clone: 56,
    clone3: 435,
    ioctl: 16,
    setsockopt: 54,
    foreignFrom: 0x4000_0000,
    column: 0,
  },
  arm64: {
    audit: 0xc00000b7,
    socket: 198,
    clone: 220,
    clone3: 435,
    ioctl: 29,
    setsockopt: 208,
    foreignFrom: null,
    column: 1,
  },
}

const AF_UNIX = 1
/** `socket()` may open only these: IPv4 and IPv6, which lead to the jail's own loopback. */
const socketFamilies = [2, 10]
/** What a sandbox of the program's own needs. Chromium's makes namespaces and leaves the files of its jail. */
const ownSandbox = ['chroot', 'unshare']
/** Every CLONE_NEW… flag that makes a namespace. */
const newNamespaces = 0x7e02_0000
/** TIOCSTI types into a terminal, TIOCLINUX pastes into a console. */
const refusedIoctls = [0x5412, 0x541c]
const socketLevel = 1
/** SO_SNDBUF and SO_RCVBUF. */
const bufferSizes = [7, 8]

const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97

const allow = 0x7fff_0000
const killProcess = 0x8000_0000
const answer = (errno: number) => 0x0005_0000 | errno

// Offsets in `struct seccomp_data`. Only the low word of an argument is read, because these calls take an int and the kernel ignores the
// rest.
const numberOffset = 0
const architectureOffset = 4
const argumentOffset = (index: number) => 16 + 8 * index

/** An instruction of classic BPF: code, jump when a test is true, jump when it is false, and a constant. */
type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, constant: number]
const load = (offset: number): Instruction => [0x20, 0, 0, offset]
const result = (value: number): Instruction => [0x06, 0, 0, value]
const equal = (value: number, whenTrue: number, whenFalse: number): Instruction => [0x15, whenTrue, whenFalse, value]
const atLeast = (value: number, whenTrue: number, whenFalse: number): Instruction => [0x35, whenTrue, whenFalse, value]
const anyBit = (mask: number, whenTrue: number, whenFalse: number): Instruction => [0x45, whenTrue, whenFalse, mask]

export interface SeccompOptions {
  /** Whether a control group counts the memory of the jail. */
  readonly memoryIsCounted: boolean
  /** Default: `command`. */
  readonly profile?: ProgramProfile | undefined
}

/**
 * The filter that bubblewrap's `--seccomp` loads, for an architecture as Node names it. Where no control group counts memory, it refuses
 * memory that belongs to no process, and leaves the buffers of sockets at the size that the kernel gives them: a program that asks for
 * larger ones is told yes, as by a kernel whose maximum is reached.
 */
export function seccompFilter(name: string, { memoryIsCounted, profile = 'command' }: SeccompOptions): Buffer {
  const architecture = architectures[name]
  if (!architecture || endianness() !== 'LE') throw new RangeError(`There is no seccomp filter for the architecture "${name}".`)
  const { audit, socket, clone, clone3, ioctl, setsockopt, foreignFrom, column } = architecture
  const isGraphical = profile === 'graphical'
  const families = isGraphical ? [AF_UNIX, ...socketFamilies] : socketFamilies
  const calls = Object.entries(memoryIsCounted ? refused : { ...refused, ...uncounted })
  const numbers = calls.flatMap(([call, numbers]) => (isGraphical && ownSandbox.includes(call) ? [] : (numbers[column] ?? [])))
  /** Instructions that run only for one system call, and end with an answer. */
  const on = (call: number, ...body: readonly Instruction[]) => [equal(call, 0, body.length), ...body]
  return encode([
    load(architectureOffset),
    equal(audit, 1, 0),
    result(killProcess),
    load(numberOffset),
    ...(foreignFrom === null ? [] : [atLeast(foreignFrom, 0, 1), result(answer(ENOSYS))]),
    ...numbers.flatMap((call) => on(call, result(answer(EPERM)))),
    ...on(clone3, result(answer(ENOSYS))),
    ...(isGraphical ? [] : on(clone, load(argumentOffset(0)), anyBit(newNamespaces, 0, 1), result(answer(EPERM)), result(allow))),
    ...on(
      socket,
      load(argumentOffset(0)),
      ...families.flatMap((family) => [equal(family, 0, 1), result(allow)]),
      result(answer(EAFNOSUPPORT)),
    ),
    ...on(
      ioctl,
      load(argumentOffset(1)),
      ...refusedIoctls.flatMap((request) => [equal(request, 0, 1), result(answer(EPERM))]),
      result(allow),
    ),
    ...(memoryIsCounted
      ? []
      : on(
          setsockopt,
          load(argumentOffset(1)),
          equal(socketLevel, 1, 0),
          result(allow),
          load(argumentOffset(2)),
          ...bufferSizes.flatMap((option) => [equal(option, 0, 1), result(answer(0))]),
          result(allow),
        )),
    result(allow),
  ])
}

function encode(instructions: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(instructions.length * 8)
  for (const [index, [code, whenTrue, whenFalse, constant]] of instructions.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(whenTrue, index * 8 + 2)
    bytes.writeUInt8(whenFalse, index * 8 + 3)
    bytes.writeUInt32LE(constant, index * 8 + 4)
  }
  return bytes
}
