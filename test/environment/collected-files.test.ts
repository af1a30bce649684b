// @module-tag quick
import type { Workspace } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, test } from 'vitest'
import { describeCollectedFiles } from '../../packages/tools/src/testing/describe-collected-files.ts'

const { signal } = new AbortController()
const openJailed = () => openSandbox({ tier: 'bubblewrap' })

describeCollectedFiles('bubblewrap', openJailed)

async function inWorkspace(work: (workspace: Workspace) => Promise<void>): Promise<void> {
  const sandbox = await openJailed()
  try {
    await work(await sandbox.workspace({}, signal))
  } finally {
    await sandbox.close()
  }
}

const collect = async (workspace: Workspace) => await workspace.collect(['out/**'], signal)
const bash = async (workspace: Workspace, script: string) =>
  await workspace.run({ command: ['bash', '-c', script], timeoutMs: 60_000 }, signal)

test.each([
  ['a pipe', 'mkdir out; mkfifo out/pipe', '"out/pipe" is a pipe'],
  ['a socket', `mkdir out; python3 -c 'import os, stat; os.mknod("out/socket", stat.S_IFSOCK | 0o600)'`, '"out/socket" is a socket'],
  ['a file that nobody may read', 'mkdir out; echo 1 > out/secret; chmod 000 out/secret', '"out/secret" changed or could not be read'],
  ['a file of a terabyte without content', 'mkdir out; truncate -s 1T out/holes', 'more than 20971520 bytes'],
  [
    'entries without number',
    'name=$(printf %0240d 0); mkdir -p out $name/$name; cd $name/$name; for i in {1..40000}; do : > $name$i; done',
    'too many files',
  ],
])('no file is collected beside %s', async (_, script, message) => {
  await inWorkspace(async (workspace) => {
    expect(await bash(workspace, script)).toMatchObject({ exitCode: 0 })
    await expect(collect(workspace)).rejects.toMatchObject({ code: 'FILES_REFUSED', message: expect.stringContaining(message) })
    expect(await bash(workspace, 'echo on')).toMatchObject({ output: 'on\n' })
  })
})

test('hard links and sparse files are collected as files', async () => {
  await inWorkspace(async (workspace) => {
    await bash(workspace, 'mkdir out; echo 1 > out/one; ln out/one out/two; truncate -s 1M out/holes')
    expect((await collect(workspace)).map(({ path, bytes }) => [path, bytes.length])).toEqual([
      ['out/holes', 2 ** 20],
      ['out/one', 2],
      ['out/two', 2],
    ])
  })
})

test('a name with a backslash or a line break is collected as it is', async () => {
  await inWorkspace(async (workspace) => {
    const names = ['out/-T', 'out/a\\\\b', 'out/a\\tb', 'out/line\nbreak']
    await bash(workspace, `mkdir out; for name in ${names.map((name) => `'${name}'`).join(' ')}; do echo 1 > "$name"; done`)
    expect((await collect(workspace)).map(({ path, bytes }) => `${path}: ${Buffer.from(bytes)}`)).toEqual(
      names.map((name) => `${name}: 1\n`),
    )
  })
})

test('processes that write are paused while files are read, and go on afterwards', async () => {
  await inWorkspace(async (workspace) => {
    const shell = await workspace.shell(signal)
    const writer = `import time
n = 0
while True:
    n += 1
    with open("out/a", "r+") as a, open("out/b", "r+") as b:
        for f in (a, b):
            f.write(str(n).zfill(9) * 100_000)
            f.flush()
    time.sleep(0.001)`
    await workspace.put('writer.py', Buffer.from(writer), signal)
    await shell.execute('mkdir out; touch out/a out/b; python3 writer.py & sleep 0.5', 30_000, signal)
    const waiting = Array.from({ length: 9 }, () => bash(workspace, 'while [ ! -e stop ]; do sleep 0.1; done'))
    const seen = new Set<string>()
    for (let round = 0; round < 5; round++) {
      const files = await collect(workspace)
      expect(files.map(({ bytes }) => bytes.length)).toEqual([900_000, 900_000])
      seen.add(Buffer.from(files[0]!.bytes.subarray(0, 9)).toString())
      await shell.execute('sleep 0.1', 30_000, signal)
    }
    expect(seen.size).toBeGreaterThan(1)
    await shell.execute('touch stop', 30_000, signal)
    expect((await Promise.all(waiting)).map(({ exitCode }) => exitCode)).toEqual(waiting.map(() => 0))
  })
})
