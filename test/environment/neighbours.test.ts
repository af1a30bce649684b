// @module-tag quick
// What a workspace can take from its neighbours: from other workspaces, and from the machine. Each program here tries to take ten times
// what one may have.
import { readFileSync, watch } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox, Workspace } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { countBelowUs } from './processes.ts'

const signal = new AbortController().signal
const MiB = 1024 * 1024
const limits = { memoryBytes: 256 * MiB, diskBytes: 32 * MiB }
let sandbox: Sandbox
let neighbour: Workspace
beforeAll(async () => {
  sandbox = await openSandbox({ tier: 'bubblewrap' })
  neighbour = await sandbox.workspace({ limits }, signal)
})
afterAll(() => sandbox.close())

/** A number of /proc of this machine. */
function machine(file: string, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(`/proc/${file}`, 'utf8'))?.[1])
}
/** Megabytes of the machine's memory that only files in memory, shared mappings and segments hold. */
const sharedMegabytes = () => machine('meminfo', /^Shmem:\s+(\d+)/m) / 1024
/** Megabytes of the machine's memory in the buffers of all its TCP and UDP sockets. Beyond a limit of the machine, every connection slows. */
const bufferMegabytes = () => (machine('net/sockstat', /^TCP:.* mem (\d+)/m) + machine('net/sockstat', /^UDP:.* mem (\d+)/m)) / 256

const python = (workspace: Workspace, code: string) => workspace.run({ command: ['python3', '-I', '-c', code], timeoutMs: 60_000 }, signal)

/**
 * Starts a program of Python in the background of a shell, and resolves when each of its processes has printed READY or has ended. They
 * hold what they took until the workspace closes.
 */
async function holdIn(workspace: Workspace, code: string): Promise<string> {
  const shell = await workspace.shell(signal)
  await workspace.put('hog.py', Buffer.from(`import time\n${code}\nprint("READY", flush=True)\ntime.sleep(600)\n`), signal)
  const start = 'python3 -I hog.py > log 2>&1 & until pgrep -x python3 > /dev/null || ! kill -0 $!; do sleep 0.02; done'
  const wait = 'while [ $(grep -c READY log) -lt $(pgrep -c -r R,S,D -x python3) ]; do sleep 0.05; done; cat log'
  return (await shell.execute(`${start}; ${wait}`, 120_000, signal)).output
}

const libc =
  'import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.shmat.restype = ctypes.c_void_p\nlibc.shmdt.argtypes = [ctypes.c_void_p]\n'
const oneMegabyte = 'megabyte = b"x" * 2**20\n'

const memoryHogs: readonly (readonly [name: string, code: string])[] = [
  ['files of memfd_create', `import os\n${oneMegabyte}f = os.memfd_create("a")\nfor _ in range(2560): os.write(f, megabyte)`],
  [
    'segments of System V that no process maps',
    `${libc}for _ in range(20):
  segment = libc.shmget(0, 128 * 2**20, 0o1600)
  if segment < 0: break
  address = libc.shmat(segment, None, 0)
  ctypes.memset(address, 1, 128 * 2**20)
  libc.shmdt(address)`,
  ],
  [
    'shared mappings of a process in the background',
    'import mmap\nprint("READY", flush=True)\ntime.sleep(1)\nl = []\nfor _ in range(2560):\n  l.append(mmap.mmap(-1, 2**20))\n  l[-1][:] = b"x" * 2**20',
  ],
]

test.each(memoryHogs)('a workspace of 256 MB does not hold 2,560 MB of memory: %s', async (_, code) => {
  const before = sharedMegabytes()
  const workspace = await sandbox.workspace({ limits }, signal)
  await holdIn(workspace, code)
  // What was begun in the background goes on after its command.
  await expect.poll(() => sleep(1500).then(() => sharedMegabytes() - before), { timeout: 30_000 }).toBeLessThan(900)
  expect((await python(neighbour, 'print(len(bytearray(100 * 2**20)))')).output).toBe(`${100 * MiB}\n`)
  await workspace.close()
})

test('all shells of a workspace have one /dev/shm of 64 MB, and all of its files end with its size', async () => {
  const before = sharedMegabytes()
  const workspace = await sandbox.workspace({ limits }, signal)
  for (let index = 0; index < 16; index++) {
    const shell = await workspace.shell(signal)
    const fill = `for folder in /workspace /tmp /dev/shm; do head -c 128M /dev/zero > $folder/fill${index}; done 2>&1`
    expect((await shell.execute(fill, 60_000, signal)).output).toContain('No space left')
  }
  // 6 GB were asked for.
  expect(sharedMegabytes() - before).toBeLessThan(600)
  await neighbour.put('file', Buffer.alloc(16 * MiB), signal)
  await workspace.close()
})

const fill = `
def fill(*sockets):
  for each in sockets:
    each.setsockopt(1, 7, 2**24)
    each.setblocking(False)
    try:
      while True: each.send(b"x" * 60000)
    except OSError: pass
`
const hogsOfSockets = (name: string, open: string, processes: number) =>
  [name, `import os, socket\n${fill}\nfor _ in range(${processes - 1}):\n  if os.fork() == 0: break\nl = []\n${open}`] as const

const socketHogs = [
  hogsOfSockets(
    'connections',
    `s = socket.create_server(("127.0.0.1", 0), backlog=500)
for _ in range(150):
  try:
    c = socket.create_connection(s.getsockname(), timeout=1)
    d, _ = s.accept()
  except OSError: break
  l += [c, d]
  fill(c, d)`,
    3,
  ),
  hogsOfSockets(
    'datagrams',
    `for _ in range(450):
  r = socket.socket(2, 2)
  r.setsockopt(1, 8, 2**24)
  r.bind(("127.0.0.1", 0))
  c = socket.socket(2, 2)
  c.connect(r.getsockname())
  l.append(r)
  for _ in range(40): c.send(b"x" * 60000)
  c.close()`,
    4,
  ),
]

test.each(socketHogs)('%s that nobody reads take no buffers from other connections', async (_, code) => {
  const before = bufferMegabytes()
  const workspace = await sandbox.workspace({ limits }, signal)
  await holdIn(workspace, code)
  expect(bufferMegabytes() - before).toBeLessThan(500)
  const exchange = `import socket, threading
s = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(s.getsockname())
d, _ = s.accept()
threading.Thread(target=lambda: (c.sendall(bytes(64 * 2**20)), c.close())).start()
n = 0
while part := d.recv(2**20): n += len(part)
print(n)`
  expect((await python(neighbour, exchange)).output).toBe(`${64 * MiB}\n`)
  await workspace.close()
})

test('where no group counts it, memory in sockets of the workspace itself is counted too', async () => {
  const workspace = await sandbox.workspace({ limits }, signal)
  const [, code] = hogsOfSockets('pairs', 'for _ in range(250):\n  l += socket.socketpair()\n  fill(*l[-2:])', 40)
  await holdIn(workspace, code)
  // 20,000 sockets with 4 GB were asked for.
  const { output } = await python(workspace, 'print(open("/proc/net/sockstat").readline().split()[2])')
  expect(Number(output)).toBeLessThan(5_000)
  await workspace.close()
})

test('inotify instances, which the kernel counts by user, are left for others', async () => {
  const take = 'import ctypes\nl = ctypes.CDLL(None)\nn = 0\nwhile n < 1000 and l.inotify_init1(0) >= 0: n += 1\nprint(n)'
  const workspace = await sandbox.workspace({ limits }, signal)
  expect(await holdIn(workspace, take)).toMatch(/^16\n/)
  expect((await python(neighbour, take)).output).toBe('16\n')
  // One of this process, which may have the same user.
  watch('/').close()
  await workspace.close()
})

test('processes of a workspace end with its number', async () => {
  const before = countBelowUs()
  const workspace = await sandbox.workspace({ limits: { ...limits, processes: 64 } }, signal)
  const forks =
    'import os, time\nfor _ in range(2000):\n  try:\n    if os.fork() == 0: time.sleep(600)\n  except OSError: break\ntime.sleep(600)'
  const ended = expect(python(workspace, forks)).rejects.toThrow('The workspace is closed')
  await vi.waitUntil(() => countBelowUs() - before > 60, { timeout: 60_000 })
  await sleep(1_000)
  expect(countBelowUs() - before).toBeLessThan(200)
  const start = 'for i in $(seq 50); do sleep 5 & done; jobs -r | wc -l'
  expect((await neighbour.run({ command: ['bash', '-c', start], timeoutMs: 20_000 }, signal)).output).toBe('50\n')
  await workspace.close()
  await ended
})

test('open files of a workspace end with the number of each process', async () => {
  const openFiles = () => machine('sys/fs/file-nr', /^(\d+)/)
  const before = openFiles()
  const workspace = await sandbox.workspace({ limits }, signal)
  const take = `import os\nfor _ in range(49):\n  if os.fork() == 0: break\nl = []\ntry:\n  while len(l) < 10_000: l.append(os.open("/dev/null", 0))\nexcept OSError: pass`
  await holdIn(workspace, take)
  // 500,000 were asked for.
  expect(openFiles() - before).toBeLessThan(50_000)
  expect((await python(neighbour, 'print(len([open("/dev/null") for _ in range(400)]))')).output).toBe('400\n')
  await workspace.close()
})

test('output without end takes no memory of this process, also where no command waits for it', async () => {
  const before = process.memoryUsage().rss
  const workspace = await sandbox.workspace({ limits }, signal)
  const shell = await workspace.shell(signal)
  await shell.execute('yes & yes >&2 & (yes >/dev/fd/250 &)', 1_000, signal)
  const floods = ['yes', 'yes >&2', 'tr "\\0" x < /dev/zero'].map((command) =>
    workspace.run({ command: ['bash', '-c', command], timeoutMs: 5_000 }, signal),
  )
  const { output } = await neighbour.run({ command: ['echo', 'there'], timeoutMs: 60_000 }, signal)
  expect(output).toBe('there\n')
  for (const { output, omittedBytes } of await Promise.all(floods)) {
    expect(Buffer.byteLength(output)).toBeLessThan(70 * 1024)
    expect(omittedBytes).toBeGreaterThan(10 * MiB)
  }
  expect((process.memoryUsage().rss - before) / MiB).toBeLessThan(200)
  await workspace.close()
})
