// @module-tag quick
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { callServerTool, openToolContext, type TestToolContext } from '../../testing/tool-context.ts'
import { codeServer } from './server.ts'

const model = async () => ({
  chat: async () => null,
  name: 'writer',
  complete: async () => '```python\nprint(1)\n```',
  transcribe: async () => '',
})

describeToolServer({
  server: codeServer,
  examples: {
    generate_python_code: { task_description: 'Print 1.' },
    run_code: { language: 'bash', code: 'echo 1' },
    get_reasoning_capabilities: {},
  },
  open: (overrides) => openToolContext({ model, ...overrides }),
  slow: { tool: 'run_code', input: { language: 'javascript', code: 'while (true);' } },
})

let context: TestToolContext
beforeAll(async () => {
  context = await openToolContext({ model })
})
afterAll(() => context.close())

test.each([
  ['python', 'import sys\nfor word in ("a", "b"):\n    print(word)\nsys.exit(3)', 'a\nb\n\n[Exit code 3.]'],
  ['javascript', 'const sum = [1, 2, 3].reduce((a, b) => a + b)\nconsole.log(sum)', '6\n\n[Exit code 0.]'],
  ['bash', 'for i in 1 2; do\n  echo $i\ndone\nexit 4', '1\n2\n\n[Exit code 4.]'],
])('a program in %s runs as a whole', async (language, code, text) => {
  expect((await callServerTool(codeServer, 'run_code', { language, code }, context)).text).toBe(text)
})

test('a program that a model wrote can be saved and run, and files stay between runs', async () => {
  const input = { task_description: 'Print 1.', save_to_file_path: 'program.py' }
  expect((await callServerTool(codeServer, 'generate_python_code', input, context)).text).toBe('print(1)\n\nSaved to program.py.')
  const run = { language: 'bash', code: 'python3 program.py | tee result; ls' }
  expect((await callServerTool(codeServer, 'run_code', run, context)).text).toBe('1\nprogram.py\nresult\n\n[Exit code 0.]')
})

test('an error of a program is in the answer', async () => {
  const { text } = await callServerTool(codeServer, 'run_code', { language: 'python', code: '1 / 0' }, context)
  expect(text).toContain('ZeroDivisionError: division by zero')
  expect(text).toContain('[Exit code 1.]')
})
