// @module-tag quick
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, test, vi } from 'vitest'
import { unreapedBelowUs } from './processes.ts'

const signal = new AbortController().signal

async function open() {
  const sandbox = await openSandbox({ tier: 'bubblewrap' })
  return { sandbox, workspace: await sandbox.workspace({}, signal) }
}

test('a program talks over its pipes until it is ended, with its variables and in the workspace', async () => {
  const { sandbox, workspace } = await open()
  const program = await workspace.program(
    { command: ['bash', '-c', 'echo "$WORD $PWD"; exec cat'], profile: 'command', env: { WORD: "it's" } },
    signal,
  )
  let output = ''
  program.stdout.on('data', (chunk) => {
    output += chunk
  })
  program.stdin.write('more\n')
  await vi.waitUntil(() => output === "it's /workspace\nmore\n", { timeout: 20_000 })
  await program.close()
  expect(await program.ended).toBe(137)
  await sandbox.close()
})

test('a program ends with its workspace, by its signal, and by itself with its exit code and what it said last', async () => {
  const { sandbox, workspace } = await open()
  const start = (script: string, until = signal) => workspace.program({ command: ['bash', '-c', script], profile: 'graphical' }, until)
  const abort = new AbortController()
  const [aborted, left, failed] = await Promise.all([
    start('sleep 1000', abort.signal),
    start('sleep 1000 & wait'),
    start('echo no >&2; exit 7'),
  ])
  abort.abort()
  expect([await aborted.ended, await failed.ended, failed.errors()]).toEqual([137, 7, 'no'])
  await workspace.close()
  expect(await left.ended).toBe(137)
  await expect(start('true')).rejects.toThrow('The workspace is closed.')
  await sandbox.close()
  expect(unreapedBelowUs()).toEqual([])
})

test('UNIX sockets and namespaces of its own are there in the profile of browsers alone', async () => {
  const { sandbox, workspace } = await open()
  const attempt = 'import socket,os,sys\ntry: socket.socket(socket.AF_UNIX); print("socket")\nexcept OSError as e: print(e.strerror)'
  const script = `python3 -c '${attempt}'; unshare --user --net true 2>/dev/null && echo namespaces; mount -t tmpfs x /tmp 2>/dev/null && echo mounts; ulimit -n; ulimit -t`
  const outputs = await Promise.all(
    (['command', 'graphical'] as const).map(async (profile) => {
      const program = await workspace.program({ command: ['bash', '-c', script], profile }, signal)
      let output = ''
      program.stdout.on('data', (chunk) => {
        output += chunk
      })
      await program.ended
      await vi.waitUntil(() => output.split('\n').length > 3, { timeout: 20_000 })
      return output.trim().split('\n')
    }),
  )
  expect(outputs).toEqual([
    ['Address family not supported by protocol', '512', '60'],
    ['socket', 'namespaces', '4096', 'unlimited'],
  ])
  await sandbox.close()
})
