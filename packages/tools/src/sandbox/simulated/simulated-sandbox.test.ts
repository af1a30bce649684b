import { describeSandbox } from '@aworld-train/testing'
import { expect, test } from 'vitest'
import { openSimulatedSandbox } from './simulated-sandbox.ts'

describeSandbox({
  name: 'simulated',
  create: () => openSimulatedSandbox(),
  skip: [
    {
      reason: 'the output of its commands is text: bytes that are no UTF-8 are read as Latin-1',
      tests: ['replaces bytes that are no UTF-8'],
    },
  ],
})

test('a workspace in the thread of one that was closed has nothing of it', async () => {
  const never = new AbortController().signal
  await using sandbox = { ...(await openSimulatedSandbox()), [Symbol.asyncDispose]: () => sandbox.close() }
  const play = async (command: string) => {
    const workspace = await sandbox.workspace({}, never)
    const { output } = await (await workspace.shell(never)).execute(command, 30_000, never)
    await workspace.close()
    return output
  }
  await play(
    'secret=canary; export secret; f() { echo canary; }; echo canary > canary.txt; (sleep 1; echo canary > /workspace/late.txt) & python3 -c "import builtins; builtins.canary = 1"; cd /tmp; echo canary > /tmp/canary.txt',
  )
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  const seen = await play(
    'pwd; echo [$secret]; f; ls /workspace /tmp; python3 -c "import builtins; print(hasattr(builtins, chr(99) + \'anary\'))"',
  )
  expect(seen).not.toContain('canary')
  expect(seen).toMatch(/^\/workspace\n\[\]\n[\s\S]*False\n$/)
})

test('python runs programs as they stand, and tracebacks name their lines', async () => {
  const never = new AbortController().signal
  const sandbox = await openSimulatedSandbox()
  try {
    const workspace = await sandbox.workspace({}, never)
    const python = async (args: readonly string[], stdin = '') =>
      (await workspace.run({ command: ['python3', ...args], stdin, timeoutMs: 60_000 }, never)).output
    await workspace.put('tools/numbers_of.py', Buffer.from('text = """1\n2"""\n'), never)
    const program = 'import sys\nfrom numbers_of import text\nprint(repr(text), sys.argv, input())\nsys.exit("the end")\n'
    await workspace.put('tools/main.py', Buffer.from(program), never)
    expect(await python(['-u', 'tools/main.py', 'a b'], 'typed\n')).toBe("'1\\n2' ['tools/main.py', 'a b'] typed\nthe end\n")
    expect(await python(['-'], 'def half(n):\n    return n / 0\nhalf(1)\n')).toMatch(
      /^Traceback \(most recent call last\):\n {2}File "<stdin>", line 3, in <module>\n {4}half\(1\)\n[\s\S]*line 2, in half\n[\s\S]*ZeroDivisionError: division by zero\n$/,
    )
    expect(await python(['-c', 'x = (\n'])).toContain("SyntaxError: '(' was never closed")
  } finally {
    await sandbox.close()
  }
})

test('what the simulation cuts is an error, and what has a setting is not cut', async () => {
  const never = new AbortController().signal
  const sandbox = await openSimulatedSandbox()
  try {
    const shell = await (await sandbox.workspace({}, never)).shell(never)
    const run = async (command: string) => (await shell.execute(command, 60_000, never)).output
    const refused = '{1..20000} is more than 10000 words, which the simulation does not make; use seq.\n'
    for (const command of ['echo {1..20000} | wc -w', 'f() { echo {1..20000}; }', "bash -c 'echo {1..20000} | wc -w'"])
      expect(await run(command)).toBe(`bash: ${refused}`)
    expect(await run('echo {1..10000} {a..c} | wc -w; echo {1..20000..3} | wc -w')).toBe('10003\n6667\n')
    expect(await run('head -c 10 /dev/zero')).toContain('head: /dev/zero')
    expect(await run('echo x > /dev/null; echo y >> /dev/null; wc -c < /dev/null')).toBe('0\n')
    expect(await run("awk 'BEGIN{for(i=0;i<150000;i++) s+=1; print s}'; seq 150000 | awk '{s+=1} END {print s}'")).toBe('150000\n150000\n')
    expect(await run('d() { if (($1>0)); then d $(($1-1)); else echo bottom; fi; }; d 900')).toBe('bottom\n')
    expect(await run('printf "a 1\\nbb 22\\n" | column -t')).toBe('a   1\nbb  22\n')
  } finally {
    await sandbox.close()
  }
})

test('a workspace that takes too much memory dies for good, and no other with it', async () => {
  const never = new AbortController().signal
  const sandbox = await openSimulatedSandbox()
  try {
    const small = await sandbox.workspace({ limits: { memoryBytes: 48 * 2 ** 20 } }, never)
    const other = await sandbox.workspace({}, never)
    const doubled = 's=x; for i in {1..24}; do s=$s$s; done; declare -A kept; for key in {1..50}; do kept[$key]=$s$key; done'
    const died = { code: 'TOOL_SERVER_DIED', message: expect.stringContaining('memory limit') }
    await expect((await small.shell(never)).execute(doubled, 60_000, never)).rejects.toMatchObject(died)
    await expect(small.put('file', Buffer.from('x'), never)).rejects.toMatchObject(died)
    // Exceeding the memory in one step does not end this process.
    const tiny = await sandbox.workspace({ limits: { memoryBytes: 1 } }, never)
    const steep = await sandbox.workspace({ limits: { memoryBytes: 128 * 2 ** 20 } }, never)
    for (const workspace of [tiny, steep]) {
      const execution = (await workspace.shell(never)).execute('x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; y="$y $x"; done', 60_000, never)
      await execution.then(
        ({ output }) => expect(output).toContain('limit exceeded'),
        (error) => expect(error).toMatchObject(died),
      )
    }
    expect(await (await other.shell(never)).execute('echo there', 60_000, never)).toMatchObject({ output: 'there\n' })
  } finally {
    await sandbox.close()
  }
})
