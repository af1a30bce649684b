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
    'secret=canary; export secret; f() { echo canary; }; echo canary > canary.txt; python3 -c "import builtins; builtins.canary = 1"; cd /tmp; echo canary > /tmp/canary.txt',
  )
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
    const refused = '{1..20000} is more than 10000 words, which the simulation does not make. Use seq.\n'
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

test('numbers are exact up to 2^53, and an error from there on', async () => {
  const never = new AbortController().signal
  const sandbox = await openSimulatedSandbox()
  try {
    const shell = await (await sandbox.workspace({}, never)).shell(never)
    const run = async (command: string) => {
      const { exitCode, output } = await shell.execute(command, 60_000, never)
      return `${output}[${exitCode}]`
    }
    const exact: Readonly<Record<string, string>> = {
      'echo $((1<<31)) $((1<<40)) $((-7>>1)) $((~7)) $((-5^3)) $((0xdeadbeefcafe & 0xffff0000ffff)) $((-1<<40))':
        '2147483648 1099511627776 -4 -8 -8 244834610760446 -1099511627776',
      'f() { echo 3; }; x=1.txt; echo $(( $(f) + ${x%.txt} ))': '4',
      'x=010; i=5; a=(1 2); echo $((x+1)) $((i++ + ++i)) $i $((a[1]+=3)) ${a[1]}': '9 12 7 5 5',
      'x=5; while (( x >= 0 )); do (( x -= 2 )); done; let "y = 1 << 33" z=y+1; echo $x $y $z': '-1 8589934592 8589934593',
      'bash -c \'echo $((0xffffffff & 0xff00ff00)); eval "echo \\$((1<<32))"\'': '4278255360\n4294967296',
      "printf '((y=1<<33)); echo $0 $y\\n' > s.sh; chmod +x s.sh; ./s.sh; source s.sh | cut -d' ' -f2": './s.sh 8589934592\n8589934592',
    }
    for (const [command, output] of Object.entries(exact)) expect(await run(command), command).toBe(`${output}\n[0]`)
    const beyond = 'a number beyond 2^53, which the simulation does not compute; use python3\n[1]'
    for (const command of ['echo $((2**62)); echo after', 'x=9007199254740993; echo $((x % 10)); echo after', 'echo $((1<<60 >> 50))'])
      expect(await run(command), command).toBe(beyond)
    expect(await run('h=1; while :; do h=$((h*31 + 7)); done; echo after')).toBe(beyond)
    expect(await run('x=08; echo $((x))')).toBe('x: value too great for base\n[1]')
    expect(await run('echo $(( i++ + $(echo 1) ))')).toMatch(/^bash: an assignment beside .*\n\[2\]$/)
  } finally {
    await sandbox.close()
  }
})

test('what has no meaning here is refused before anything of the command runs', async () => {
  const never = new AbortController().signal
  const sandbox = await openSimulatedSandbox()
  try {
    const shell = await (await sandbox.workspace({}, never)).shell(never)
    for (const [command, message] of [
      ['echo before; sleep 60 & echo after', '"&" is not simulated: nothing runs in the background. Run one command after the other.'],
      ['f() { sleep 60 & }', '"&" is not simulated: nothing runs in the background. Run one command after the other.'],
      ['echo before; trap "echo bye" EXIT', '"trap" is not simulated. Run what is to happen at the end as a command of its own.'],
    ] as const)
      expect(await shell.execute(command, 60_000, never)).toMatchObject({ exitCode: 2, output: `bash: ${message}\n` })
    expect((await shell.execute("bash -c 'sleep 60 &'; eval 'sleep 60 &'", 60_000, never)).output).toMatch(/"&" is[\s\S]*"&" is/)
    expect(await shell.execute('x=1; set -u; echo $nope; echo after', 60_000, never)).toMatchObject({
      exitCode: 1,
      output: expect.stringMatching(/^nope: unbound variable\n\[The shell ended\./),
    })
    expect(await shell.execute('echo "[$x]"', 60_000, never)).toMatchObject({ output: '[]\n' })
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
