// @module-tag quick
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { callServerTool, openToolContext, type TestToolContext } from '../../testing/tool-context.ts'
import { terminalServer } from './server.ts'

describeToolServer({
  server: terminalServer,
  examples: { execute_command: { command: 'echo hello; exit 3' }, get_command_history: {}, get_terminal_capabilities: {} },
  slow: { tool: 'execute_command', input: { command: 'while true; do :; done' } },
})

let context: TestToolContext
beforeAll(async () => {
  context = await openToolContext()
})
afterAll(() => context.close())

const execute = async (input: Record<string, unknown>) => (await callServerTool(terminalServer, 'execute_command', input, context)).text

test('a command answers with output, errors and exit code, and the next goes on where it was', async () => {
  expect(await execute({ command: 'mkdir a && cd a && place=Ulm; echo made; no-such-program' })).toMatch(
    /^```\nmade\n\S+( line 1:)? no-such-program: command not found\n```\n\n\[Exit code 127\.\]$/,
  )
  expect(await execute({ command: 'pwd; echo $place', output_format: 'text' })).toBe('/workspace/a\nUlm\n\n[Exit code 0.]')
  expect(await execute({ command: 'true' })).toBe('[Exit code 0.]')
  expect(JSON.parse(await execute({ command: "echo '```'", output_format: 'json' }))).toEqual({
    exit_code: 0,
    output: '```\n',
    omitted_bytes: 0,
    timed_out: false,
    timeout: 30,
  })
  expect(await execute({ command: "echo '```'" })).toBe('````\n```\n````\n\n[Exit code 0.]')
})

test('what is left out of long output, and a command that is ended, are said', async () => {
  expect(await execute({ command: 'seq 1 100000' })).toMatch(/^```\n1\n2\n(?:.*\n)*100000\n```\n\n\[Exit code 0\. \d+ bytes in the middle/)
  expect(await execute({ command: 'echo before; sleep 60', timeout: 1 })).toMatch(
    /^```\nbefore\n(Terminated\n)?```\n\n\[Exit code 124\. It was ended after 1 s; a larger timeout lets it run longer\.\]$/,
  )
})

test('the history has the last commands of this terminal alone', async () => {
  const other = await openToolContext()
  try {
    const history = (count: number, of = other) => callServerTool(terminalServer, 'get_command_history', { count }, of)
    expect((await history(10)).text).toBe('No command was run yet.')
    for (const command of ['echo 1', '(exit 2)', 'echo 3']) await callServerTool(terminalServer, 'execute_command', { command }, other)
    expect((await history(2)).text).toBe('(exit 2)\n[exit code 2]\n\necho 3\n[exit code 0]')
  } finally {
    await other.close()
  }
})

test('the model is told whether its bash is simulated', async () => {
  const { text } = await callServerTool(terminalServer, 'get_terminal_capabilities', {}, context)
  expect(text).toMatch(context.tier === 'simulated' ? /^execute_command simulates bash/ : /^execute_command runs bash/)
})
