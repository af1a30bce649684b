import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CommandResult, type Sandbox, type Shell, ToolError, type Workspace, type WorkspaceLimits } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { naughtyNames } from './naughty-strings.ts'

export interface DescribeSandboxOptions {
  readonly name: string
  readonly create: () => Promise<Sandbox>
  /** Tests that the tier cannot pass, with the reason. */
  readonly skip?: readonly { readonly reason: string; readonly tests: readonly string[] }[] | undefined
}

const never = new AbortController().signal
const minuteMs = 60_000

/** The tests that every tier of the sandbox passes, on which tools rely. */
export function describeSandbox(options: DescribeSandboxOptions): void {
  const { name, create, skip = [] } = options
  const reasons = new Map(skip.flatMap(({ reason, tests }) => tests.map((title) => [title, reason] as const)))
  let sandbox: Sandbox

  const check = (title: string, run: (workspace: Workspace) => Promise<void>, limits?: Partial<WorkspaceLimits>) =>
    test(title, async (context) => {
      const reason = reasons.get(title)
      if (reason !== undefined) return context.skip(reason)
      const workspace = await sandbox.workspace({ limits }, never)
      try {
        await run(workspace)
      } finally {
        await workspace.close()
      }
    })

  describe(`sandbox: ${name}`, () => {
    beforeAll(async () => {
      sandbox = await create()
    })
    afterAll(() => sandbox?.close())

    describe('programs', () => {
      check('are run without a shell, with their input', async (workspace) => {
        const words = ['a b', "it's", '$HOME', '`id`', '*', '', '😀']
        expect(await runProgram(workspace, ['printf', '<%s>', ...words])).toBe(words.map((word) => `<${word}>`).join(''))
        expect(await runProgram(workspace, ['cat'], 'line\n')).toBe('line\n')
      })

      check('begin in /workspace', async (workspace) => {
        expect(await runProgram(workspace, ['pwd'])).toBe('/workspace\n')
      })

      check('answer their exit code, and 127 where there is none of the name', async (workspace) => {
        expect(await workspace.run({ command: ['bash', '-c', 'exit 4'], timeoutMs: minuteMs }, never)).toMatchObject({
          exitCode: 4,
          timedOut: false,
        })
        expect(await workspace.run({ command: ['no-such-program'], timeoutMs: minuteMs }, never)).toMatchObject({ exitCode: 127 })
      })

      check('are python3', async (workspace) => {
        await workspace.put('data.txt', Buffer.from('6\n7\n'), never)
        const code = "import math, sys; print(math.prod(int(line) for line in open('data.txt')), sys.argv[1:])"
        expect(await runProgram(workspace, ['python3', '-c', code, 'a b'])).toBe("42 ['a b']\n")
      })

      check('are node', async (workspace) => {
        expect(await runProgram(workspace, ['node', '-e', 'console.log([1, 2].map((x) => x * 21).join())'])).toBe('21,42\n')
        expect(await runProgram(workspace, ['node', '-p', '6 * 7'])).toBe('42\n')
      })

      check('are ended when their time is over', async (workspace) => {
        const result = await workspace.run({ command: ['python3', '-c', 'while True: pass'], timeoutMs: 300 }, never)
        expect(result).toMatchObject({ exitCode: 124, timedOut: true })
      })

      check('are ended at once when they are aborted', async (workspace) => {
        await abortsAtOnce((signal) => workspace.run({ command: ['python3', '-c', 'while True: pass'], timeoutMs: minuteMs }, signal))
      })
    })

    describe('a shell', () => {
      check('keeps its folder, variables and functions', async (workspace) => {
        const shell = await workspace.shell(never)
        await execute(shell, 'mkdir -p deep/er && cd deep/er; count=5; list=(1 2 3); twice() { echo "$1$1"; }')
        expect(await execute(shell, `pwd; echo $count \${list[2]}; twice a`)).toBe('/workspace/deep/er\n5 3\naa\n')
      })

      check('answers the exit code of each command', async (workspace) => {
        const shell = await workspace.shell(never)
        for (const [command, exitCode] of [
          ['true', 0],
          ['false', 1],
          ['(exit 7)', 7],
          ['no-such-program', 127],
          ['false; true', 0],
          ['true | false', 1],
        ] as const)
          expect((await shell.execute(command, minuteMs, never)).exitCode, command).toBe(exitCode)
        await execute(shell, '(exit 9)')
        expect(await execute(shell, 'echo $?')).toBe('9\n')
      })

      check('gives output and errors in their order', async (workspace) => {
        const shell = await workspace.shell(never)
        expect(await execute(shell, 'echo 1; echo 2 >&2; echo 3; echo 4 >&2')).toBe('1\n2\n3\n4\n')
      })

      check('passes pipes, here-documents and substitutions', async (workspace) => {
        const shell = await workspace.shell(never)
        expect(await execute(shell, 'seq 1 100 | grep 7 | wc -l | tr -d " "')).toBe('19\n')
        expect(await execute(shell, 'word=$(echo inner); cat <<END\nouter $word\nEND')).toBe('outer inner\n')
        expect(await execute(shell, 'for i in a b; do\n  echo $i\ndone > list; sort -r list')).toBe('b\na\n')
      })

      check('goes on after a command that cannot be read, and after one that exits', async (workspace) => {
        const shell = await workspace.shell(never)
        expect((await shell.execute("echo 'open", minuteMs, never)).exitCode).not.toBe(0)
        expect(await execute(shell, 'echo 1')).toBe('1\n')
        expect(await shell.execute('echo 2; exit 3', minuteMs, never)).toMatchObject({
          exitCode: 3,
          // A tier whose shell ends as well reports that.
          output: expect.stringMatching(/^2\n(?:\[The shell ended.*\]\n)?$/),
        })
        expect(await execute(shell, 'echo 4')).toBe('4\n')
      })

      check('gives a command no input', async (workspace) => {
        const shell = await workspace.shell(never)
        expect(await execute(shell, 'cat; read line; echo "[$line]"')).toBe('[]\n')
      })

      check(
        'keeps the first half and the last of long output, and counts what is between',
        async (workspace) => {
          const shell = await workspace.shell(never)
          const { output, omittedBytes } = await shell.execute('seq 1 100000', minuteMs, never)
          expect(output.startsWith('1\n2\n3\n')).toBe(true)
          expect(output.endsWith('99999\n100000\n')).toBe(true)
          expect(output).toContain(String(omittedBytes))
          const bytes = 588_895
          expect(omittedBytes).toBeGreaterThanOrEqual(bytes - 1000)
          expect(omittedBytes).toBeLessThan(bytes)
          expect((await shell.execute('echo short', minuteMs, never)).omittedBytes).toBe(0)
        },
        { outputBytes: 1000 },
      )

      check('replaces bytes that are no UTF-8', async (workspace) => {
        const shell = await workspace.shell(never)
        expect(await execute(shell, "printf '\\xff\\xc3\\xa9\\n'")).toBe('\ufffdé\n')
      })

      check('ends a command whose time is over, and goes on', async (workspace) => {
        const shell = await workspace.shell(never)
        await execute(shell, 'cd /tmp; count=5; twice() { echo "$1$1"; }')
        for (const command of ['sleep 30', 'while true; do :; done', "python3 -c 'while True: pass'"]) {
          const begin = performance.now()
          expect(await shell.execute(command, 300, never), command).toMatchObject({ exitCode: 124, timedOut: true })
          expect(performance.now() - begin, command).toBeLessThan(10_000)
          expect(await execute(shell, 'pwd; echo $count; twice a'), command).toBe('/tmp\n5\naa\n')
        }
      })

      check('ends a command at once that is aborted, and goes on', async (workspace) => {
        const shell = await workspace.shell(never)
        await abortsAtOnce((signal) => shell.execute('sleep 30', minuteMs, signal))
        await abortsAtOnce((signal) => shell.execute('while true; do :; done', minuteMs, signal))
        expect(await execute(shell, 'echo still there')).toBe('still there\n')
        const reason = new Error('before it began')
        await expect(shell.execute('echo', minuteMs, AbortSignal.abort(reason))).rejects.toBe(reason)
      })

      check('runs commands one after the other, and others beside it', async (workspace) => {
        const first = await workspace.shell(never)
        const commands = Array.from({ length: 100 }, (_, index) => execute(first, `count=$((count + 1)); echo ${index}:$count`))
        const shells = await Promise.all(Array.from({ length: 4 }, () => workspace.shell(never)))
        const beside = shells.map(async (shell, index) => {
          await execute(shell, `mine=${index}; mkdir shell-${index}; cd shell-${index}`)
          return execute(shell, 'echo $mine; pwd')
        })
        expect(await Promise.all(beside)).toEqual(shells.map((_, index) => `${index}\n/workspace/shell-${index}\n`))
        expect(await Promise.all(commands)).toEqual(commands.map((_, index) => `${index}:${index + 1}\n`))
      })

      check('can be closed, and leaves the others', async (workspace) => {
        const [first, second] = [await workspace.shell(never), await workspace.shell(never)]
        await execute(first, 'echo here > file')
        await first.close()
        expect(await execute(second, 'cat file')).toBe('here\n')
      })
    })

    describe('files', () => {
      check('are put and read back, and commands see them', async (workspace) => {
        const bytes = Uint8Array.from({ length: 1000 }, (_, index) => index % 256)
        await workspace.put('new/folder/all-bytes', bytes, never)
        expect(new Uint8Array(await workspace.get('new/folder/all-bytes', 1000, never))).toEqual(bytes)
        expect(new Uint8Array(await workspace.get('/workspace/new/folder/all-bytes', 1000, never))).toEqual(bytes)
        const shell = await workspace.shell(never)
        expect((await execute(shell, 'wc -c < new/folder/all-bytes; cd new; echo made > /workspace/made')).trim()).toBe('1000')
        expect((await workspace.get('made', 100, never)).toString()).toBe('made\n')
        await workspace.put('made', Buffer.from('replaced'), never)
        expect(await execute(shell, 'cat /workspace/made')).toBe('replaced')
      })

      check('that come in parts are written whole, or not at all', async (workspace) => {
        const shell = await workspace.shell(never)
        const stream = (size: number, parts: readonly number[], error?: Error) => ({
          size,
          chunks: (async function* () {
            for (const part of parts) yield Buffer.alloc(part, 'x')
            if (error) throw error
          })(),
        })
        await workspace.put('file', stream(3_000_000, [1_000_000, 0, 1_999_999, 1]), never)
        expect(await execute(shell, 'wc -c < file; tr -d x < file | wc -c')).toMatch(/^\s*3000000\s+0\s*$/)
        await workspace.put('file', stream(0, []), never)
        await workspace.put('file', stream(3, [3]), never)
        const cut = new Error('the sender went away')
        for (const path of ['file', 'other']) await expect(workspace.put(path, stream(200_000, [100_000], cut), never)).rejects.toBe(cut)
        const aborted = new AbortController()
        const endless = (async function* () {
          for (;;) {
            yield Buffer.alloc(1000)
            aborted.abort(new Error('no longer wanted'))
            await new Promise((resolve) => setTimeout(resolve, 20))
          }
        })()
        await expect(workspace.put('file', { size: 1e9, chunks: endless }, aborted.signal)).rejects.toThrow('no longer wanted')
        expect(await execute(shell, 'ls -A; cat file')).toBe('file\nxxx')
      })

      check('that are missing, folders or too large are errors of the tool', async (workspace) => {
        await workspace.put('folder/file', Buffer.alloc(101), never)
        for (const path of ['missing', 'folder', 'folder/file/below', 'folder/missing'])
          await expect(workspace.get(path, 1000, never), path).rejects.toBeInstanceOf(ToolError)
        await expect(workspace.get('folder/file', 100, never)).rejects.toBeInstanceOf(ToolError)
        for (const path of ['folder', 'folder/file/below'])
          await expect(workspace.put(path, Buffer.from('x'), never), path).rejects.toBeInstanceOf(ToolError)
      })

      check('outside of the workspace are out of reach', async (workspace) => {
        const paths = [
          '',
          '.',
          '/',
          '..',
          '../x',
          'a/../../x',
          '/etc/passwd',
          '/workspace/../etc/passwd',
          '/proc/self/environ',
          '/workspace',
          'a\0b',
        ]
        for (const path of paths) {
          await expect(workspace.get(path, 1_000_000, never), path).rejects.toBeInstanceOf(ToolError)
          await expect(workspace.put(path, Buffer.from('x'), never), path).rejects.toBeInstanceOf(ToolError)
        }
      })

      check('are not reached by links out of the workspace', async (workspace) => {
        const shell = await workspace.shell(never)
        await execute(
          shell,
          'echo secret > /tmp/target; ln -s /tmp/target file; ln -s /tmp folder; ln -s loop loop; ln -s ../tmp/target up',
        )
        for (const path of ['file', 'folder/target', 'loop', 'up'])
          await expect(workspace.get(path, 1000, never), path).rejects.toBeInstanceOf(ToolError)
        for (const path of ['file', 'folder/new', 'folder/target', 'loop', 'up'])
          await expect(workspace.put(path, Buffer.from('x'), never), path).rejects.toBeInstanceOf(ToolError)
        expect(await execute(shell, 'cat /tmp/target; ls /tmp')).toBe('secret\ntarget\n')
      })

      check('have names of any kind', async (workspace) => {
        const shell = await workspace.shell(never)
        for (const word of naughtyNames) {
          await workspace.put(word, Buffer.from(word), never)
          expect((await workspace.get(word, 1000, never)).toString(), word).toBe(word)
          expect(await execute(shell, `cat -- ${quote(word)}`), word).toBe(word)
          expect(await execute(shell, `printf %s ${quote(word)}`), word).toBe(word)
        }
        expect((await execute(shell, 'ls -A | wc -l')).trim()).not.toBe('0')
      })

      check(
        'fill the workspace and no more, and it works again when there is room',
        async (workspace) => {
          const shell = await workspace.shell(never)
          const large = Buffer.alloc(3_000_000)
          const parts = async function* () {
            yield* [large, large]
          }
          for (const bytes of [large, { size: 2 * large.length, chunks: parts() }])
            await expect(workspace.put('large', bytes, never)).rejects.toBeInstanceOf(ToolError)
          expect((await shell.execute('seq 1 600000 > large', minuteMs, never)).exitCode).not.toBe(0)
          await execute(shell, 'rm -f large')
          await workspace.put('small', Buffer.from('fits'), never)
          expect(await execute(shell, 'cat small')).toBe('fits')
        },
        { diskBytes: 2_000_000 },
      )
    })

    describe('a workspace', () => {
      check('shares no file with another', async (workspace) => {
        const other = await sandbox.workspace({}, never)
        try {
          await workspace.put('mine', Buffer.from('x'), never)
          const shells = [await workspace.shell(never), await other.shell(never)]
          await execute(shells[0]!, 'echo x > /tmp/mine')
          expect(await Promise.all(shells.map((shell) => execute(shell, 'ls /workspace /tmp | grep -c mine')))).toEqual(['2\n', '0\n'])
        } finally {
          await other.close()
        }
      })

      check('sees no file and no variable of the machine', async (workspace) => {
        const folder = await mkdtemp(join(tmpdir(), 'outside-'))
        const variable = 'AWORLD_TRAIN_TEST_SECRET'
        process.env[variable] = 'secret-value'
        try {
          await writeFile(join(folder, 'secret.txt'), 'secret-value')
          const shell = await workspace.shell(never)
          const command = `cat ${quote(join(folder, 'secret.txt'))}; env; cat /proc/*/environ; ls ${quote(folder)}`
          expect((await shell.execute(command, minuteMs, never)).output).not.toContain('secret-value')
        } finally {
          delete process.env[variable]
          await rm(folder, { recursive: true })
        }
      })

      check('reaches no port of the machine', async (workspace) => {
        let connections = 0
        const server = createServer((socket) => {
          connections++
          socket.destroy()
        })
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
        try {
          const { port } = server.address() as AddressInfo
          const shell = await workspace.shell(never)
          const python = `import socket; socket.create_connection(("127.0.0.1", ${port}), 2)`
          await shell.execute(
            `exec 3<>/dev/tcp/127.0.0.1/${port}; python3 -c '${python}'; curl -m 2 http://127.0.0.1:${port}/`,
            minuteMs,
            never,
          )
          expect(connections).toBe(0)
        } finally {
          server.close()
        }
      })

      check('ends what runs when it is closed, and refuses from then on', async (workspace) => {
        const shell = await workspace.shell(never)
        const running = expect(shell.execute('sleep 30', minuteMs, never)).rejects.toBeInstanceOf(Error)
        await workspace.close()
        await running
        for (const call of [
          () => shell.execute('true', minuteMs, never),
          () => workspace.run({ command: ['true'], timeoutMs: minuteMs }, never),
          () => workspace.shell(never),
          () => workspace.put('file', Buffer.from('x'), never),
          () => workspace.get('file', 1, never),
        ])
          await expect(call()).rejects.toBeInstanceOf(Error)
        await workspace.close()
      })
    })

    test('a sandbox that closes ends its workspaces', async () => {
      const closing = await create()
      const workspace = await closing.workspace({}, never)
      const shell = await workspace.shell(never)
      await closing.close()
      await expect(shell.execute('true', minuteMs, never)).rejects.toBeInstanceOf(Error)
    })
  })
}

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

async function execute(shell: Shell, command: string): Promise<string> {
  return (await shell.execute(command, minuteMs, never)).output
}

async function runProgram(workspace: Workspace, command: readonly [string, ...string[]], stdin?: string): Promise<string> {
  return (await workspace.run({ command, stdin, timeoutMs: minuteMs }, never)).output
}

async function abortsAtOnce(call: (signal: AbortSignal) => Promise<CommandResult>): Promise<void> {
  const controller = new AbortController()
  const reason = new Error('the caller went away')
  const result = call(controller.signal).then(
    () => 'a result',
    (error: unknown) => error,
  )
  await new Promise((resolve) => setTimeout(resolve, 100))
  const begin = performance.now()
  controller.abort(reason)
  expect(await result).toBe(reason)
  expect(performance.now() - begin).toBeLessThan(10_000)
}
