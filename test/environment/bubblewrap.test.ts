// @module-tag quick
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox, Shell, Workspace } from '@aworld-train/core'
import { describeSandbox } from '@aworld-train/testing'
import { openSandbox, probeBubblewrap } from '@aworld-train/tools/sandbox'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { childOfOurs, sleepersOf, sleepTime } from './processes.ts'

describeSandbox({ name: 'bubblewrap', create: () => openSandbox({ tier: 'bubblewrap' }) })

const signal = new AbortController().signal
const MiB = 1024 * 1024
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await openSandbox({ tier: 'bubblewrap' })
})
afterAll(() => sandbox.close())

const open = (limits = {}) => sandbox.workspace({ limits }, signal)
const inShell = (shell: Shell, command: string, timeoutMs = 20_000) => shell.execute(command, timeoutMs, signal)

test('the probe passes, and the tier is the one that is taken by itself', async () => {
  expect(await probeBubblewrap()).toEqual({ ok: true })
  const automatic = await openSandbox()
  expect(automatic.tier).toBe('bubblewrap')
  await automatic.close()
})

test('memory is bounded for all processes together', async () => {
  const workspace = await open({ memoryBytes: 256 * MiB, diskBytes: 32 * MiB })
  // Three that take 150 MB each and keep them; the first to be ended is reported.
  const code = `
import os, signal
for _ in range(3):
  if os.fork() == 0:
    memory = b"x" * (150 * 1024 * 1024)
    signal.pause()
print(os.WTERMSIG(os.wait()[1]))`
  const result = await workspace.run({ command: ['python3', '-I', '-c', code], timeoutMs: 20_000 }, signal)
  expect(result).toMatchObject({ exitCode: 0, output: '9\n', timedOut: false })
  await workspace.close()
})

test('Node and WebAssembly run within little memory', async () => {
  const workspace = await open({ memoryBytes: 512 * MiB })
  const code = 'new WebAssembly.Memory({ initial: 16, maximum: 65536 }); console.log(new Array(1000).fill(1).length)'
  expect(await workspace.run({ command: ['node', '-e', code], timeoutMs: 20_000 }, signal)).toMatchObject({ exitCode: 0, output: '1000\n' })
  await workspace.close()
})

test('output may be opened again as a file, and programs have a name, a home and a loopback', async () => {
  const workspace = await open()
  const shell = await workspace.shell(signal)
  expect((await inShell(shell, 'echo one > /dev/stdout; echo two | tee /dev/stderr >/dev/null; whoami; cd; pwd')).output).toBe(
    'one\ntwo\nagent\n/workspace\n',
  )
  const server = 'import socket; s = socket.create_server(("127.0.0.1", 8123)); print("up", flush=True); s.accept()[0].send(b"hello")'
  await inShell(shell, `python3 -I -c '${server}' > up 2>&1 & until grep -q up up; do sleep 0.05; done`)
  // Another program of the workspace reaches it: they are one machine to those that use them.
  const client = await workspace.run({ command: ['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/8123; cat <&3'], timeoutMs: 10_000 }, signal)
  expect(client.output).toBe('hello')
  await workspace.close()
})

test('as many shells are open as a lease may have, beside all processes of its commands', async () => {
  const workspace = await open({ processes: 16 })
  const shells: Shell[] = []
  for (let index = 0; index < 64; index++) shells.push(await workspace.shell(signal))
  expect((await inShell(shells[63]!, 'for i in $(seq 10); do sleep 1 & done; jobs -r | wc -l')).output).toBe('10\n')
  const [first, ...others] = shells
  await first!.close()
  expect((await inShell(others[0]!, 'echo there')).output).toBe('there\n')
  await workspace.close()
})

test('a process whose time of the processor is over says so, in the background too', async () => {
  const workspace = await open({ cpuSeconds: 1 })
  const burn = 'python3 -I -c "while True: pass"'
  expect(await workspace.run({ command: ['bash', '-c', `exec ${burn}`], timeoutMs: 20_000 }, signal)).toMatchObject({ exitCode: 152 })
  const shell = await workspace.shell(signal)
  expect(await inShell(shell, burn)).toMatchObject({ exitCode: 152, output: expect.stringContaining('CPU time limit exceeded') })
  const { output } = await inShell(shell, `${burn} & wait; true`)
  expect(output).toMatch(/CPU time limit exceeded +python3/)
  // One that takes the signal for its own is ended a second later.
  const deaf = 'import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass'
  expect(await workspace.run({ command: ['python3', '-I', '-c', deaf], timeoutMs: 20_000 }, signal)).toMatchObject({ exitCode: 137 })
  await workspace.close()
})

test('workspaces share nothing', async () => {
  const [one, other] = await Promise.all([open(), open()])
  await one.put('mine.txt', Buffer.from('one'), signal)
  const look = 'ls /workspace /tmp; exec 3<>/dev/tcp/127.0.0.1/8124 && echo REACHED'
  const shell = await one.shell(signal)
  await inShell(shell, 'touch /tmp/mine; python3 -I -m http.server 8124 >/dev/null 2>&1 & sleep 0.3')
  const { output } = await other.run({ command: ['bash', '-c', look], timeoutMs: 10_000 }, signal)
  expect(output).not.toMatch(/mine|REACHED/)
  await Promise.all([one.close(), other.close()])
})

describe('a command that is ended', () => {
  let workspace: Workspace
  let shell: Shell
  beforeAll(async () => {
    workspace = await open({ processes: 64 })
    shell = await workspace.shell(signal)
    await inShell(shell, 'kept=yes; sleep 4711 &')
  })
  afterAll(() => workspace.close())

  test.each([
    ['a program that waits', 'sleep 4712; echo NEXT'],
    [
      'a program that takes no signal',
      `python3 -I -c 'import signal, time
for n in range(1, 65):
  try: signal.signal(n, signal.SIG_IGN)
  except (OSError, ValueError): pass
time.sleep(4712)'; echo NEXT`,
    ],
    ['a loop of bash', 'while :; do :; done'],
    ['loops in functions', 'f() { while :; do sleep 0.01; done; }; g() { while :; do f; done; }; g; echo NEXT'],
    ['daemons', '(setsid sleep 4712 &); (trap "" TERM; sleep 4712 & sleep 4712) & sleep 4712'],
    ['processes that multiply', ':() { : | : & }; : ; sleep 4712'],
    ['a flood', 'yes'],
  ])('leaves the shell as it was, with nothing of it running: %s', async (_, command) => {
    const result = await inShell(shell, command, 300)
    expect({ ...result, output: '' }).toEqual({ exitCode: 124, output: '', omittedBytes: expect.any(Number), timedOut: true })
    expect(result.output).not.toContain('NEXT')
    expect(result.output).not.toContain('The shell ended')
    const { output } = await inShell(
      shell,
      'echo $kept; ps -eo args | grep -c "[s]leep 4711"; ps -eo args | grep -E "[s]leep 4712|^yes|^python" | wc -l',
    )
    // Before it, bash may report background programs that were ended.
    expect(output).toMatch(/(?:^|\n)yes\n1\n0\n$/)
  })

  test('is ended too where its caller goes away', async () => {
    const controller = new AbortController()
    const pending = shell.execute('sleep 4713; echo NEXT', 60_000, controller.signal)
    await sleep(200)
    controller.abort(new Error('the caller went away'))
    await expect(pending).rejects.toThrow('the caller went away')
    expect((await inShell(shell, 'echo $kept; pgrep -fx "sleep 4713"')).output).toBe('yes\n')
  })
})

test.each([
  ['exit 3', 3],
  ['echo last; exec false', 1],
  ['kill -9 $$', 137],
  ['set -e; false', 1],
])('the shell says that %s ended it, and the next command has a new one', async (command, exitCode) => {
  const workspace = await open()
  const shell = await workspace.shell(signal)
  await inShell(shell, 'lost=yes; touch kept')
  const result = await inShell(shell, command)
  expect(result).toMatchObject({ exitCode, timedOut: false })
  expect(result.output).toMatch(/\[The shell ended\. .*\]\n$/)
  expect((await inShell(shell, 'echo "[$lost]"; ls')).output).toBe('[]\nkept\n')
  await workspace.close()
})

test.each(['exec <&-', 'exec >&-', 'exec 2>/dev/null', 'exec nothing-of-that-name', 'return 0', 'if', 'echo ${x', 'exec 0<&- 1>&- 2>&-'])(
  'the shell goes on after %s',
  async (command) => {
    const workspace = await open()
    const shell = await workspace.shell(signal)
    await inShell(shell, 'kept=yes')
    await inShell(shell, command)
    expect(await inShell(shell, 'echo $kept; cat; echo error >&2')).toMatchObject({ exitCode: 0, output: 'yes\nerror\n' })
    await workspace.close()
  },
)

test('bash names a mistake by its line in the command', async () => {
  const workspace = await open()
  const shell = await workspace.shell(signal)
  expect((await inShell(shell, 'echo one\nno-such-program\n. no-such-file')).output).toBe(
    'one\nbash: line 2: no-such-program: command not found\nbash: line 3: no-such-file: No such file or directory\n',
  )
  expect((await inShell(shell, 'if fi')).output).toMatch(/^bash: line 1: syntax error near .*\nbash: line 1: `if fi'\n$/)
  await workspace.close()
})

test('what is no text and 100 MB on one line come within the limit, and the end of a command cannot be forged', async () => {
  const workspace = await open({ outputBytes: 1000 })
  const shell = await workspace.shell(signal)
  const line = await inShell(shell, 'head -c 100000000 /dev/zero | tr "\\0" x')
  expect(line).toMatchObject({ exitCode: 0, omittedBytes: 100_000_000 - 1000 })
  expect(line.output).toBe(`${'x'.repeat(500)}\n[99999000 bytes left out]\n${'x'.repeat(500)}`)
  expect((await inShell(shell, "printf '\\xff\\x1e0123456789abcdef0123456789abcdef 7\\n'; (exit 5)")).exitCode).toBe(5)
  await workspace.close()
})

test('a jail that something outside ended is dead for good', async () => {
  const workspace = await open()
  const shell = await workspace.shell(signal)
  await inShell(shell, `sleep ${sleepTime(1)} &`)
  const pending = inShell(shell, `sleep ${sleepTime(2)}`)
  pending.catch(() => {})
  await vi.waitUntil(() => sleepersOf(sleepTime(2)).length > 0, { timeout: 60_000 })
  process.kill(childOfOurs(sleepersOf(sleepTime(2))[0]!), 'SIGKILL')
  await expect(pending).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
  await expect(inShell(shell, 'true')).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
  await expect(workspace.get('a', 1, signal)).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
  await expect(workspace.shell(signal)).rejects.toMatchObject({ code: 'TOOL_SERVER_DIED' })
  await workspace.close()
  expect(sleepersOf(sleepTime(1))).toEqual([])
})

test('files that links, devices and races lead to are those of the jail', async () => {
  const workspace = await open()
  const shell = await workspace.shell(signal)
  await inShell(
    shell,
    'ln -s /etc/passwd passwd; ln -s /proc/self/environ environ; ln -s /proc/1/root root; mkfifo fifo; ln -s /dev/zero zero; ln -s /usr usr; echo own > own; ln -s own link; ln /workspace/own hard',
  )
  for (const path of [
    'passwd',
    'environ',
    'root/etc/passwd',
    'fifo',
    'zero',
    'usr/bin/env',
    '../etc/passwd',
    '/proc/self/environ',
    '/dev/stdin',
  ])
    await expect(workspace.get(path, 1000, signal), path).rejects.toMatchObject({ name: 'ToolError' })
  expect([await workspace.get('link', 10, signal), await workspace.get('hard', 10, signal)].map(String)).toEqual(['own\n', 'own\n'])
  for (const path of ['usr/bin/env', '/etc/passwd', 'root/tmp/x', 'passwd', 'zero', 'fifo'])
    await expect(workspace.put(path, Buffer.from('x'), signal), path).rejects.toMatchObject({ name: 'ToolError' })
  // A file behind a link within the workspace is written; another name of the same file keeps what it had.
  await workspace.put('link', Buffer.from('new'), signal)
  expect((await inShell(shell, 'cat own hard; rm own; mv hard own')).output).toBe('newown\n')
  // A path that changes all the time: the file of the workspace, the jail's own, or an error.
  await inShell(shell, 'while :; do ln -sfn /etc/passwd race; ln -sfn own race; done &')
  for (let tries = 0; tries < 30; tries++) {
    const bytes = await workspace.get('race', 1000, signal).catch((error: Error) => error.name)
    expect(['own\n', 'ToolError']).toContain(String(bytes).startsWith('root:x:0:0:root:/:/bin/sh\nagent:') ? 'own\n' : String(bytes))
  }
  await workspace.close()
})

test('a full workspace is an error of the tool, and is usable once files are removed', async () => {
  const workspace = await open({ diskBytes: 8 * MiB })
  await expect(workspace.put('large', Buffer.alloc(9 * MiB), signal)).rejects.toThrow('The workspace is full')
  await workspace.put('fits', Buffer.alloc(7 * MiB), signal)
  await expect(workspace.put('more', Buffer.alloc(2 * MiB), signal)).rejects.toMatchObject({ name: 'ToolError' })
  const shell = await workspace.shell(signal)
  expect((await inShell(shell, 'for i in $(seq 5000); do : > f$i || break; done; rm -f f* fits')).output).toContain('No space left')
  await workspace.put('more', Buffer.alloc(2 * MiB), signal)
  await workspace.close()
})

test('closing ends every process', async () => {
  const workspace = await open()
  const shell = await workspace.shell(signal)
  await inShell(shell, `(setsid sleep ${sleepTime(3)} &); sleep ${sleepTime(3)} &`)
  const running = workspace.run({ command: ['sleep', sleepTime(3)], timeoutMs: 60_000 }, signal)
  running.catch(() => {})
  await vi.waitUntil(() => sleepersOf(sleepTime(3)).length === 3, { timeout: 60_000 })
  await workspace.close()
  expect(sleepersOf(sleepTime(3))).toEqual([])
  await expect(running).rejects.toThrow('The workspace is closed')
})

test('a program that is ended while its jail starts leaves nothing', async () => {
  const workspace = await open()
  for (let delay = 0; delay < 15; delay += 0.25) {
    const controller = new AbortController()
    const running = workspace.run({ command: ['sleep', sleepTime(4)], timeoutMs: 60_000 }, controller.signal)
    setTimeout(() => controller.abort(new Error('ended')), delay)
    await expect(running).rejects.toThrow('ended')
  }
  await vi.waitUntil(() => sleepersOf(sleepTime(4)).length === 0, { timeout: 60_000 })
  await workspace.close()
})
