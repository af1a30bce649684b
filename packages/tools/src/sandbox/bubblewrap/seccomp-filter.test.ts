import { expect, test } from 'vitest'
import { seccompFilter } from './seccomp-filter.ts'

interface Call {
  readonly audit: number
  readonly number: number
  readonly args?: readonly bigint[]
}

/** Runs a filter as the kernel does, for the instructions that ours use. */
function decide(filter: Buffer, { audit, number, args = [] }: Call): string {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(number >>> 0, 0)
  data.writeUInt32LE(audit, 4)
  for (const [index, arg] of args.entries()) data.writeBigUInt64LE(BigInt.asUintN(64, arg), 16 + 8 * index)
  let accumulator = 0
  for (let at = 0; at * 8 < filter.length; at++) {
    const code = filter.readUInt16LE(at * 8)
    const [whenTrue, whenFalse] = [filter.readUInt8(at * 8 + 2), filter.readUInt8(at * 8 + 3)]
    const constant = filter.readUInt32LE(at * 8 + 4)
    if (code === 0x20) accumulator = data.readUInt32LE(constant)
    else if (code === 0x15) at += accumulator === constant ? whenTrue : whenFalse
    else if (code === 0x35) at += accumulator >= constant ? whenTrue : whenFalse
    else if (code === 0x45) at += (accumulator & constant) !== 0 ? whenTrue : whenFalse
    else if (code === 0x06) {
      if (constant === 0x7fff0000) return 'allowed'
      return constant === 0x80000000 ? 'killed' : `errno ${constant & 0xffff}`
    } else throw new Error(`unknown instruction ${code}`)
  }
  throw new Error('the filter ended without an answer')
}

const counted = { memoryIsCounted: true }

const x64 = { audit: 0xc000003e, read: 0, write: 1, socket: 41, socketpair: 53, clone: 56, ioctl: 16, unshare: 272, mount: 165 }
const arm64 = { audit: 0xc00000b7, read: 63, write: 64, socket: 198, socketpair: 199, clone: 220, ioctl: 29, unshare: 97, mount: 40 }

test.each([
  ['x64', x64],
  ['arm64', arm64],
] as const)('on %s ordinary calls pass, and refused ones answer', (name, calls) => {
  const filter = seccompFilter(name, counted)
  const of = (number: number, ...args: bigint[]) => decide(filter, { audit: calls.audit, number, args })
  expect([of(calls.read), of(calls.write), of(calls.socketpair, 1n), of(calls.clone, 0x1200011n)]).toEqual(Array(4).fill('allowed'))
  expect([of(calls.unshare), of(calls.mount), of(425), of(441)]).toEqual(['errno 1', 'errno 1', 'errno 1', 'allowed'])
  expect(of(435)).toBe('errno 38')
  // IPv4 and IPv6 come first, then Unix, netlink, packet, and the largest number.
  expect([2n, 10n, 1n, 16n, 17n, 0xffffffffn].map((family) => of(calls.socket, family))).toEqual([
    ...Array(2).fill('allowed'),
    ...Array(4).fill('errno 97'),
  ])
  // Each flag that makes a namespace is tried alone and among others.
  for (const flag of [0x20000n, 0x2000000n, 0x4000000n, 0x8000000n, 0x10000000n, 0x20000000n, 0x40000000n])
    expect([of(calls.clone, flag), of(calls.clone, flag | 0x11n)]).toEqual(['errno 1', 'errno 1'])
  expect([of(calls.ioctl, 0n, 0x5401n), of(calls.ioctl, 0n, 0x5412n), of(calls.ioctl, 0n, 0x541cn)]).toEqual([
    'allowed',
    'errno 1',
    'errno 1',
  ])
})

test.each(['x64', 'arm64'] as const)(
  'on %s a program of the profile for browsers may make namespaces and UNIX sockets, and nothing else more',
  (name) => {
    const calls = name === 'x64' ? { ...x64, chroot: 161 } : { ...arm64, chroot: 51 }
    const filter = seccompFilter(name, { ...counted, profile: 'graphical' })
    const of = (number: number, ...args: bigint[]) => decide(filter, { audit: calls.audit, number, args })
    expect([of(calls.unshare), of(calls.chroot), of(calls.clone, 0x10000011n), of(calls.socket, 1n)]).toEqual(Array(4).fill('allowed'))
    expect([of(calls.mount), of(425), of(435), of(calls.socket, 16n)]).toEqual(['errno 1', 'errno 1', 'errno 38', 'errno 97'])
  },
)

test.each([
  ['x64', x64.audit, { setsockopt: 54, shmget: 29, memfdCreate: 319, memfdSecret: 447, mqOpen: 240, msgget: 68, semget: 64 }],
  ['arm64', arm64.audit, { setsockopt: 208, shmget: 194, memfdCreate: 279, memfdSecret: 447, mqOpen: 180, msgget: 186, semget: 190 }],
] as const)('on %s memory of no process, and larger buffers of sockets, are only where a group counts memory', (name, audit, calls) => {
  const { setsockopt, ...others } = calls
  const [free, bounded] = [seccompFilter(name, counted), seccompFilter(name, { memoryIsCounted: false })]
  for (const number of Object.values(others))
    expect([free, bounded].map((filter) => decide(filter, { audit, number }))).toEqual(['allowed', 'errno 1'])
  const sets = (level: bigint, option: bigint) =>
    [free, bounded].map((filter) => decide(filter, { audit, number: setsockopt, args: [3n, level, option] }))
  // SO_SNDBUF and SO_RCVBUF, then SO_REUSEADDR, then TCP_DEFER_ACCEPT and UDP_CORK, whose numbers are no options of the socket itself.
  for (const option of [7n, 8n]) expect(sets(1n, option)).toEqual(['allowed', 'errno 0'])
  for (const [level, option] of [
    [1n, 2n],
    [6n, 7n],
    [17n, 8n],
  ] as const)
    expect(sets(level, option)).toEqual(['allowed', 'allowed'])
})

test('upper halves of arguments, which the kernel ignores, hide nothing', () => {
  const filter = seccompFilter('x64', counted)
  const high = 1n << 32n
  expect(decide(filter, { audit: x64.audit, number: x64.ioctl, args: [0n, high | 0x5412n] })).toBe('errno 1')
  expect(decide(filter, { audit: x64.audit, number: x64.socket, args: [high | 1n] })).toBe('errno 97')
})

test('calls of another architecture end the process, and those of x32 are not there', () => {
  expect(decide(seccompFilter('x64', counted), { audit: 0x40000003, number: 3 })).toBe('killed')
  expect(decide(seccompFilter('x64', counted), { audit: x64.audit, number: 0x40000000 | x64.read })).toBe('errno 38')
  expect(decide(seccompFilter('arm64', counted), { audit: x64.audit, number: 0 })).toBe('killed')
})

test('there is no filter for an architecture whose numbers are not listed', () => {
  expect(() => seccompFilter('riscv64', counted)).toThrow('There is no seccomp filter for the architecture "riscv64".')
})
