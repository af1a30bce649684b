import type { Sandbox, Workspace, WorkspaceFile } from '@aworld-train/core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

const { signal } = new AbortController()

/** Tests of the files that a workspace hands over and takes, on any tier. */
export function describeCollectedFiles(tier: string, open: () => Promise<Sandbox>): void {
  describe(`collected files: ${tier}`, () => {
    let sandbox: Sandbox
    let workspace: Workspace
    beforeAll(async () => {
      sandbox = await open()
    })
    beforeEach(async () => {
      workspace = await sandbox.workspace({}, signal)
      return () => workspace.close()
    })
    afterAll(() => sandbox.close())

    const bash = async (script: string, readOnly = false) =>
      await workspace.run({ command: ['bash', '-c', script], timeoutMs: 30_000, readOnly }, signal)
    const collect = async (...patterns: string[]) => (await workspace.collect(patterns, signal)).map(shown)
    const shown = ({ path, executable, bytes }: WorkspaceFile) => `${path}${executable ? '*' : ''}: ${Buffer.from(bytes)}`

    it('are the regular files that fit, with their permission to run', async () => {
      await bash(`mkdir -p out/deep 'out/a b' other; echo 1 > out/one; : > out/deep/empty; echo 'ü' > "out/a b/ä"; echo x > other/x
        printf 'echo hi' > out/run; chmod 755 out/run; echo no > note`)
      expect(await collect('out/**')).toEqual(['out/a b/ä: ü\n', 'out/deep/empty: ', 'out/one: 1\n', 'out/run*: echo hi'])
      expect(await collect('note', 'o*/x')).toEqual(['note: no\n', 'other/x: x\n'])
      expect(await collect('missing/**')).toEqual([])
    })

    it('are whole, however many bytes they have', async () => {
      const bytes = Buffer.alloc(20 * 2 ** 20, 'figs and dates\n')
      await workspace.put('out/large', bytes, signal)
      const [file] = await workspace.collect(['out/*'], signal)
      expect(Buffer.from(file!.bytes).equals(bytes)).toBe(true)
      await workspace.put('out/more', Buffer.from('1'), signal)
      await expect(workspace.collect(['out/*'], signal)).rejects.toMatchObject({
        code: 'FILES_REFUSED',
        message: expect.stringContaining('more than 20971520 bytes'),
      })
    })

    it.each([
      ['a link to a file of the machine', 'mkdir out; ln -s /etc/passwd out/passwd', '"out/passwd" is a link'],
      ['a link for the folder', 'ln -s /etc out', '"out" is a link'],
      ['10,000 files', 'mkdir out; cd out; for i in {1..10000}; do : > $i; done', 'more than 64 files'],
    ])('are none with %s', async (_, script, message) => {
      expect(await bash(script)).toMatchObject({ exitCode: 0 })
      await expect(workspace.collect(['out/**'], signal)).rejects.toMatchObject({
        code: 'FILES_REFUSED',
        message: expect.stringContaining(message),
      })
      expect(await bash('echo on')).toMatchObject({ output: 'on\n' })
    })

    it('lie in another workspace, which a program may only read', async () => {
      const file = (path: string, text: string, executable = false) => ({ path, executable, bytes: Buffer.from(text) })
      await workspace.putAll([file('out/deep/one', '1\n'), file('run.sh', 'cat out/deep/one', true), file('out/deep/one', '2\n')], signal)
      expect(await bash('bash run.sh', true)).toMatchObject({ exitCode: 0, output: '2\n' })
      for (const change of [
        'echo 3 > out/deep/one',
        'rm out/deep/one',
        'echo 4 > out/new',
        'mv run.sh other.sh',
        'ln -s /workspace/out /tmp/l; echo 5 > /tmp/l/one',
      ])
        expect(await bash(`(${change}) 2>/dev/null; echo $?`, true)).not.toMatchObject({ output: '0\n' })
      expect(await bash('echo 6 > /tmp/new && cat /tmp/new', true)).toMatchObject({ output: '6\n' })
      expect(await collect('**')).toEqual(['out/deep/one: 2\n', 'run.sh*: cat out/deep/one'])
      await expect(workspace.putAll([file('../etc/passwd', '')], signal)).rejects.toThrow('outside')
    })
  })
}
