// @module-tag quick
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ListenOptions, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox, Workspace } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sleepersOf, sleepTime } from './processes.ts'

const signal = new AbortController().signal
const folder = mkdtempSync(join(tmpdir(), 'probes-'))
const secretFile = join(folder, 'secret')
const socketPath = join(folder, 'socket')
const servers: Server[] = []
let port = 0
let sandbox: Sandbox
let workspace: Workspace

beforeAll(async () => {
  writeFileSync(secretFile, 'HOSTFILE')
  process.env['PROBE_SECRET'] = 'canary-of-the-environment'
  const listen = (where: ListenOptions) =>
    new Promise<Server>((resolve) => {
      const server = createServer((socket) => socket.end('CANARY\n'))
      servers.push(server)
      server.listen(where)
      server.once('listening', () => resolve(server))
    })
  const server = await listen({ port: 0, host: '127.0.0.1' })
  port = (server.address() as { port: number }).port
  await listen({ path: socketPath })
  sandbox = await openSandbox({ tier: 'bubblewrap' })
  const MiB = 1024 * 1024
  workspace = await sandbox.workspace({ limits: { memoryBytes: 128 * MiB, diskBytes: 64 * MiB, processes: 64, cpuSeconds: 2 } }, signal)
})

afterAll(async () => {
  delete process.env['PROBE_SECRET']
  for (const server of servers) server.close()
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

const python = (code: string) => `python3 -I -c '${code}' 2>&1`

/** Without blocking: what is reached is served by this process. */
async function runOutside(command: string): Promise<string> {
  const child = spawn('bash', ['-c', command], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  for await (const chunk of child.stdout) output += chunk
  return output
}

/** What was tried, by which command, and what its output holds where it succeeds. `outside`: it succeeds without a jail. */
const probes: readonly (readonly [name: string, command: () => string, succeeds: RegExp, where?: 'outside'])[] = [
  ['a file of the machine is read', () => `cat ${secretFile} 2>&1`, /HOSTFILE/, 'outside'],
  [
    'its environment is read',
    () => 'cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n" | grep -a PROBE_SECRET; echo $PROBE_SECRET',
    /canary-of/,
    'outside',
  ],
  ['its files are reached through /proc', () => `cat /proc/1/root${secretFile} /proc/self/root${secretFile} 2>&1`, /HOSTFILE/, 'outside'],
  ['its loopback is reached', () => `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`, /CANARY/, 'outside'],
  [
    'a Unix socket of the machine is reached',
    () => python(`import socket;s=socket.socket(socket.AF_UNIX);s.connect("${socketPath}");print(s.recv(99))`),
    /CANARY/,
    'outside',
  ],
  ['its processes are seen', () => 'ls /proc | grep -c "^[0-9]"', /^([2-9]\d|\d{3,})\s*$/m, 'outside'],
  [
    'system folders are written',
    () => 'for f in /usr/bin/.w /etc/.w /.w /opt/.w /dev/.w; do echo x > $f && echo WROTE; done 2>&1',
    /WROTE/,
  ],
  [
    'a user namespace or a mount is made',
    () => 'unshare -Ur true 2>&1 && echo GOTNS; mkdir -p m; mount -t tmpfs none m 2>&1 && echo MNT',
    /GOTNS|MNT/,
  ],
  ['300 MB are written', () => 'dd if=/dev/zero of=fill bs=1M count=300 2>/dev/null; stat -c %s fill; rm -f fill', /^3145728\d\d$/m],
  [
    '300 MB are written to /tmp',
    () => 'dd if=/dev/zero of=/tmp/fill bs=1M count=300 2>/dev/null; stat -c %s /tmp/fill; rm -f /tmp/fill',
    /^3145728\d\d$/m,
  ],
  [
    '300 MB are written to /dev/shm',
    () => 'dd if=/dev/zero of=/dev/shm/fill bs=1M count=300 2>/dev/null; stat -c %s /dev/shm/fill; rm -f /dev/shm/fill',
    /^3145728\d\d$/m,
  ],
  ['700 MB of memory are used', () => python('b=b"x"*(700*1024*1024);print("USED")'), /^USED$/m],
  ['1,000 files are open', () => python('l=[]\nfor i in range(1000): l.append(open("/dev/null"))\nprint("FILES",len(l))'), /FILES 1000/],
  [
    '200 processes run',
    () => 'for i in $(seq 200); do sleep 2 & done 2>/dev/null; jobs -r | wc -l; kill $(jobs -p) 2>/dev/null',
    /^(1[5-9]\d|200)\s*$/m,
  ],
  ['3 s of the processor are burnt', () => python('import time\nwhile time.process_time() < 3: pass\nprint("BURNT")'), /^BURNT$/m],
]

const named = probes.map(([name, command, succeeds, where]) => ({ name, command, succeeds, where }))

test.each(named)('it does not happen that $name', async ({ command, succeeds, where }) => {
  // A probe that fails everywhere would show nothing.
  if (where === 'outside') expect(await runOutside(command())).toMatch(succeeds)
  const { output } = await workspace.run({ command: ['bash', '-c', command()], timeoutMs: 20_000 }, signal)
  expect(output).not.toMatch(succeeds)
})

test("where images of Node have the user's project, commands find nothing", async () => {
  const { output } = await workspace.run({ command: ['bash', '-c', 'ls -A /usr/src; stat -f -c %T /usr/src'], timeoutMs: 5000 }, signal)
  expect(output).toBe('tmpfs\n')
})

test('a daemon does not outlive its program', async () => {
  const command = `(setsid sleep ${sleepTime(1)} >/dev/null 2>&1 &); sleep 0.1; pgrep -c sleep`
  const { output } = await workspace.run({ command: ['bash', '-c', command], timeoutMs: 5000 }, signal)
  expect(output).toBe('1\n')
  await vi.waitUntil(() => sleepersOf(sleepTime(1)).length === 0, { timeout: 60_000 })
})

/** System calls by their numbers on x64 and arm64, with arguments that are valid or lead to EFAULT or EINVAL where the call is let in. */
const calls: Readonly<Record<string, readonly [x64: number, arm64: number, ...args: readonly (number | string)[]]>> = {
  io_uring_setup: [425, 425, 4, 0],
  keyctl: [250, 219, 0, -3, 1],
  add_key: [248, 217, 'b"user"', 'b"x"', 'b"y"', 1, -3],
  ptrace: [101, 117, 0, 0, 0, 0],
  bpf: [321, 280, 0, 0, 0],
  perf_event_open: [298, 241, 0, 0, -1, -1, 0],
  userfaultfd: [323, 282, 0],
  unshare: [272, 97, 0x10000000],
  setns: [308, 268, 0, 0],
  mount: [165, 40, 0, 'b"/tmp"', 'b"tmpfs"', 0, 0],
  open_tree: [428, 428, -100, 'b"/tmp"', 1],
  pivot_root: [155, 41, 'b"/tmp"', 'b"/tmp"'],
  process_vm_readv: [310, 270, 1, 0, 0, 0, 0, 0],
  'socket(AF_UNIX)': [41, 198, 1, 1, 0],
  'socket(AF_NETLINK)': [41, 198, 16, 3, 0],
  'socket(AF_PACKET)': [41, 198, 17, 3, 0],
  'socket(AF_VSOCK)': [41, 198, 40, 1, 0],
  'clone(CLONE_NEWUSER)': [56, 220, 0x10000011, 0, 0, 0, 0],
  clone3: [435, 435, 0, 0],
  'ioctl(TIOCSTI)': [16, 29, 0, 0x5412, 'b"x"'],
  'ioctl(TIOCSTI with upper bits)': [16, 29, 0, 0x1_0000_5412, 'b"x"'],
}

test('none of the refused system calls is let in', async () => {
  const lines = Object.entries(calls).map(([name, [x64, arm64, ...args]]) => {
    const values = [process.arch === 'arm64' ? arm64 : x64, ...args].map((value) => (typeof value === 'number' ? `L(${value})` : value))
    return `ctypes.set_errno(0); r = l.syscall(${values.join(', ')}); print(${JSON.stringify(name)}, errno.errorcode.get(ctypes.get_errno()) if r < 0 else "OK", flush=True)`
  })
  const code = `import ctypes, errno\nl = ctypes.CDLL(None, use_errno=True)\nL = ctypes.c_long\n${lines.join('\n')}`
  const { output } = await workspace.run({ command: ['python3', '-I', '-c', code], timeoutMs: 10_000 }, signal)
  const answers = output.trim().split('\n')
  expect(answers).toHaveLength(lines.length)
  expect(answers.filter((line) => !/ (?:EPERM|ENOSYS|EAFNOSUPPORT)$/.test(line))).toEqual([])
})
