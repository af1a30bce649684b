// @module-tag quick
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { EnvironmentLease, LeaseTask, McpServerConfig } from '@aworld-train/core'
import { createEnvironment } from 'aworld-train'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { sleepersOf, sleepTime } from './processes.ts'

const never = new AbortController().signal
const script = fileURLToPath(new URL('shell-server.ts', import.meta.url))
const shell = (more: McpServerConfig = {}, args: readonly string[] = []): McpServerConfig => ({
  command: 'node',
  args: [script, ...args],
  sandbox: true,
  ...more,
})
const folder = mkdtempSync(join(tmpdir(), 'jailed-servers-'))
const secretFile = join(folder, 'secret')
chmodSync(folder, 0o755)
const environment = createEnvironment({ baseDirectory: folder, warmProcesses: 0 })
let port = 0
let loopback: Server
let spawned: ChildProcess

beforeAll(async () => {
  writeFileSync(secretFile, 'HOSTFILE')
  spawned = spawn('sleep', ['600'], { env: { PROBE_SECRET: 'canary-of-the-environment' }, stdio: 'ignore' })
  loopback = createServer((socket) => socket.end('CANARY\n')).listen(0, '127.0.0.1')
  await new Promise((resolve) => loopback.once('listening', resolve))
  port = (loopback.address() as { port: number }).port
})

afterAll(async () => {
  spawned.kill()
  loopback.close()
  await environment.close()
  rmSync(folder, { recursive: true })
})

interface Opened {
  readonly lease: EnvironmentLease
  run(command: string): Promise<string>
}

let leases = 0
async function open(server: McpServerConfig, task: LeaseTask = { id: 'task' }): Promise<Opened> {
  const lease = environment.lease({ rollout: `rollout-${leases++}`, attempt: 0, sample: 0, task })
  return { lease, run: await runner(lease, 'agent', server) }
}

async function runner(lease: EnvironmentLease, agent: string, server: McpServerConfig) {
  const tools = await lease.tools({ agent, mcpConfig: { mcpServers: { shell: server } } }, never)
  return async (command: string) => {
    const { content, isError } = await tools.call({ name: 'run', arguments: { command } }, never)
    expect(isError, content).toBe(false)
    return content
  }
}

const python = (code: string) => `python3 -I -c '${code}' 2>&1`

/** What was tried, by which command, and what its output holds where it succeeds. */
const probes: readonly (readonly [name: string, command: (other: string) => string, succeeds: RegExp])[] = [
  ['a file of the machine is read', () => `cat ${secretFile}`, /HOSTFILE/],
  ['the passwords of the machine are seen', () => 'ls /etc/shadow', /^\/etc\/shadow$/m],
  ['what stands beside the program is read', () => `ls "${join(script, '..')}"`, /probes\.test\.ts/],
  ['the file of another lease is read', (other) => `cat ${other}/kept`, /OTHERS/],
  ['leases are listed', (other) => `ls ${join(other, '..')} | wc -l`, /^([2-9]|\d\d+)$/m],
  ['the environment of a process is read', () => 'cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n" | grep -a PROBE_SECRET', /canary-of/],
  ['files of the machine are reached through /proc', () => `cat /proc/*/root${secretFile} 2>&1`, /HOSTFILE/],
  ['its processes are seen', () => 'ls /proc | grep -c "^[0-9]"', /^([2-9]\d|\d{3,})\s*$/m],
  ['a port of the machine is reached', () => `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`, /CANARY/],
  ['a Unix socket is made', () => python('import socket;socket.socket(socket.AF_UNIX);print("MADE")'), /^MADE$/m],
]
const named = probes.map(([name, command, succeeds]) => ({ name, command, succeeds }))

test('nothing of the machine is reached from a jailed server, which is reached from one without a jail', async () => {
  const other = await open(shell({ sandbox: false }))
  await other.run('echo OTHERS > kept')
  const [jailed, plain] = [await open(shell()), await open(shell({ sandbox: false }))]
  for (const { name, command, succeeds } of named) {
    expect(await plain.run(command(other.lease.directory)), name).toMatch(succeeds)
    expect(await jailed.run(command(other.lease.directory)), name).not.toMatch(succeeds)
  }
  await Promise.all([other, jailed, plain].map(({ lease }) => lease.close()))
})

test.each([
  [
    'folders of the system and its own program are written',
    `for f in /usr/.w /etc/.w /.w /opt/.w /dev/.w "${script}" /usr/src/.w; do echo "// x" >> "$f" && echo WROTE; done`,
    /WROTE/,
  ],
  ['a namespace or a mount is made', 'unshare -Ur true && echo MADE; mount -t tmpfs none /tmp && echo MADE', /MADE/],
  [
    '300 MB are written to /tmp',
    'dd if=/dev/zero of=/tmp/fill bs=1M count=300 2>/dev/null; stat -c %s /tmp/fill; rm -f /tmp/fill',
    /^3145728\d\d$/m,
  ],
  ['a file of 300 MB is written', '(dd if=/dev/zero of=fill bs=1M count=300 2>/dev/null); stat -c %s fill; rm -f fill', /^3145728\d\d$/m],
  ['3 GB of memory are used', python('b=b"x"*(3<<30);print("USED")'), /^USED$/m],
  [
    '300 processes run',
    'for i in $(seq 300); do sleep 2 & done 2>/dev/null; jobs -r | wc -l; kill $(jobs -p) 2>/dev/null',
    /^(2[0-9][0-9]|300)\s*$/m,
  ],
] as const)('it does not happen that %s', async (_, command, succeeds) => {
  const { lease, run } = await open(shell())
  const output = await run(command).catch((error: { code: string }) => error.code)
  expect(output).not.toMatch(succeeds)
  await lease.close()
})

test('one that fills its directory with many files is ended, and says why', async () => {
  const { lease, run } = await open(shell())
  await run('head -c 100000000 /dev/zero > first')
  await expect(run('for i in 1 2 3; do head -c 100000000 /dev/zero > more$i; done; sleep 60')).rejects.toMatchObject({
    code: 'TOOL_SERVER_DIED',
    message: expect.stringMatching(/was ended by SIGKILL.*may write 256 MB to .*\/.*, and more came there/s),
  })
  await lease.close()
})

test('it works in the directory of its lease, on the files of its task, with no variable but its own', async () => {
  writeFileSync(join(folder, 'data.csv'), 'a,b\n')
  const task = { id: 'task', files: ['data.csv'], setup: { files: { 'src/main.py': 'print(1)\n' }, commands: ['echo made > made'] } }
  const { lease, run } = await open(shell({ env: { OWN: 'a b' } }), task)
  const { directory } = lease
  expect(await run('pwd; cat data.csv src/main.py made; echo changed | tee data.csv src/main.py made new > /dev/null')).toBe(
    `${directory}\na,b\nprint(1)\nmade\n`,
  )
  for (const name of ['data.csv', 'src/main.py', 'made', 'new']) expect(readFileSync(join(directory, name), 'utf8')).toBe('changed\n')
  const variables = (await run('tr "\\0" "\\n" < /proc/$PPID/environ')).trim().split('\n')
  // Bash has variables of its own.
  expect(variables.filter((each) => !/^(?:_|PWD|OLDPWD|SHLVL)=/.test(each)).sort()).toEqual([
    `AWORLD_TRAIN_DIRECTORY=${directory}`,
    `HOME=${directory}`,
    'LANG=C.UTF-8',
    'OWN=a b',
    'PATH=/opt/node/bin:/usr/local/bin:/usr/bin:/bin',
    'TERM=dumb',
    'USER=agent',
  ])
  await lease.close()
  expect(existsSync(directory)).toBe(false)
})

test('a value of its variables is seen by no other user of the machine', async () => {
  const { lease, run } = await open(shell({ env: { TOKEN: `secret-${process.pid}` } }))
  expect(await run('echo $TOKEN')).toBe(`secret-${process.pid}\n`)
  const { stdout } = await promisify(execFile)('bash', ['-c', 'cat /proc/*/cmdline 2>/dev/null | tr "\\0" "\\n"'])
  expect(stdout).toContain(script)
  expect(stdout).not.toContain(`secret-${process.pid}`)
  await lease.close()
})

test('it reads what "read" names, and what is written to its directory leads nowhere else', async () => {
  mkdirSync(join(folder, 'tables'), { recursive: true })
  writeFileSync(join(folder, 'tables', 'one'), 'ONE')
  const victim = join(folder, 'victim')
  writeFileSync(victim, 'as it was')
  writeFileSync(join(folder, 'data.csv'), 'a,b\n')
  const server = shell({ sandbox: { read: ['./tables', './victim'] } }, [`ln -sf ${victim} data.csv; ln -sf ${victim} later.txt`])
  const { lease, run } = await open(server, { id: 'task', files: ['data.csv'], setup: { files: { 'later.txt': 'x' } } })
  expect(await run(`cat ${folder}/tables/one; echo x > ${folder}/tables/two; cat ${secretFile}`)).toMatch(
    /^ONE.*two: Read-only file system\n.*secret: No such file or directory\n$/s,
  )
  expect(await run('ls')).toBe('data.csv\nlater.txt\n')
  expect(readFileSync(victim, 'utf8')).toBe('as it was')
  await lease.close()
})

test('one is ready before a lease that has nothing to write asks for it', async () => {
  await using stack = new AsyncDisposableStack()
  const warm = stack.adopt(createEnvironment({ baseDirectory: folder }), (each) => each.close())
  const tools = (task: LeaseTask) =>
    warm
      .lease({ rollout: `warm-${leases++}`, attempt: 0, sample: 0, task })
      .tools({ agent: 'a', mcpConfig: { mcpServers: { shell: shell() } } }, never)
  const started = (count: number) => vi.waitUntil(async () => (await warm.counts()).serversStarted === count, { timeout: 60_000 })
  await tools({ id: 'task' })
  await started(2)
  await tools({ id: 'task' })
  await started(3)
  await tools({ id: 'task', setup: { files: { a: 'x' } } })
  await started(4)
})

test('agents share its process where they say the same, and not where one of them has no jail', async () => {
  const { lease, run } = await open(shell())
  const others = [await runner(lease, 'equal', shell()), await runner(lease, 'free', shell({ sandbox: false }))]
  await run('echo 1 > /tmp/mark')
  expect(await others[0]!('cat /tmp/mark')).toBe('1\n')
  expect(await others[1]!('cat /tmp/mark')).toMatch(/No such file/)
  await run('echo 2 > shared')
  expect(await others[1]!('cat shared')).toBe('2\n')
  await lease.close()
})

test('a stateless one serves every lease from a folder in memory, and sees the directory of none', async () => {
  const [first, second] = [await open(shell({ stateless: true })), await open(shell({ stateless: true }))]
  expect(await first.run('pwd; echo 1 > mark; echo $AWORLD_TRAIN_DIRECTORY')).toBe('/tmp\n\n')
  expect(await second.run(`cat mark; ls ${folder} ${first.lease.directory}`)).toMatch(/^1\nls: .*\nls: /)
  await Promise.all([first, second].map(({ lease }) => lease.close()))
})

test.each([
  ['that waits for a network', { command: 'sleep', args: ['60'] }, /no answer within 0\.5 s.*no network, so it has to be installed/],
  ['that is not there', { command: 'no-such-program' }, /no-such-program: not found.*Check its command/s],
  [
    'that reads what it does not name',
    { command: 'node', args: ['-e', `require('${secretFile}')`] },
    /Cannot find module.*"read": \[paths\]/s,
  ],
])('one %s says what to do', async (_, server, message) => {
  // A busy machine gets its time to start what fails.
  const startTimeoutMs = server.command === 'sleep' ? 500 : 20_000
  await using stack = new AsyncDisposableStack()
  const impatient = stack.adopt(createEnvironment({ warmProcesses: 0, startTimeoutMs }), (each) => each.close())
  const lease = impatient.lease({ rollout: `rollout-${leases++}`, attempt: 0, sample: 0, task: { id: 'task' } })
  const failed = lease.tools({ agent: 'agent', mcpConfig: { mcpServers: { shell: { ...server, sandbox: true } } } }, never)
  await expect(failed).rejects.toMatchObject({ code: 'ENVIRONMENT_START_FAILED', message: expect.stringMatching(message) })
})

test('one that dies ends its lease, and no blank one takes its place', async () => {
  const { lease, run } = await open(shell())
  const died = expect.objectContaining({ code: 'TOOL_SERVER_DIED' })
  await run('echo 1 > kept')
  await expect(run('kill -9 $PPID; sleep 60')).rejects.toEqual(died)
  await expect(run('cat kept')).rejects.toBe(lease.lost.reason)
  await lease.close()
  expect(existsSync(lease.directory)).toBe(false)
})

test('all that it started ends with its lease', async () => {
  const { lease, run } = await open(shell())
  await run(`(setsid sleep ${sleepTime(1)} >/dev/null 2>&1 &); sleep ${sleepTime(1)} >/dev/null 2>&1 & sleep 0.1`)
  expect(sleepersOf(sleepTime(1))).toHaveLength(2)
  await lease.close()
  await vi.waitUntil(() => sleepersOf(sleepTime(1)).length === 0, { timeout: 60_000 })
})

test('nothing is left of a jailed server when the process that has it is killed', async () => {
  const holder = fileURLToPath(new URL('killed-jailed-server.ts', import.meta.url))
  const child = spawn(process.execPath, [holder, script, sleepTime(2)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await new Promise((resolve) => child.stdout.once('data', resolve))
  expect(sleepersOf(sleepTime(2))).toHaveLength(2)
  child.kill('SIGKILL')
  await vi.waitUntil(() => sleepersOf(sleepTime(2)).length === 0, { timeout: 60_000 })
})
