import { z } from 'zod'
import { defineTool } from '../../tool-server.ts'
import { commandAnswer, commandText, timeoutSeconds, toCommandAnswer } from '../terminal/command-answer.ts'

/** Programs that run their standard input. */
const programs = {
  python: ['python3', '-'],
  javascript: ['node', '-'],
  bash: ['bash'],
} as const

/** Runs a program in a process of its own, of which only the files stay. */
export const runCode = defineTool({
  name: 'run_code',
  description:
    'Runs a program in /workspace and answers with what it prints and its exit code. Each run begins anew: values are lost, files stay. There is no input, and the web only where the variable https_proxy is set.',
  input: z.object({
    language: z.enum(['python', 'javascript', 'bash']).describe('What the program is written in.'),
    code: z.string().min(1).max(1_000_000).describe('The whole program; print what you want to see.'),
    timeout: timeoutSeconds,
  }),
  output: commandAnswer,
  async call({ language, code, timeout }, { workspace, signal }) {
    const result = await workspace.run({ command: programs[language], stdin: code, timeoutMs: timeout * 1_000 }, signal)
    return toCommandAnswer(result, timeout, 'text')
  },
  toText: commandText,
})
