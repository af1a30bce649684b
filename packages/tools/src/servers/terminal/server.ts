import type { SandboxTier, Shell } from '@aworld-train/core'
import { z } from 'zod'
import { differencesText } from '../../sandbox/simulated/differences.ts'
import { defineFormattedTool, defineTool, outputFormat, type ToolServer } from '../../tool-server.ts'
import { commandAnswer, commandText, timeoutSeconds, toCommandAnswer } from './command-answer.ts'

interface PastCommand {
  readonly command: string
  readonly exit_code: number
}

/** The commands that each shell has run. A history lives as long as its shell, so nobody has to clear it. */
const histories = new WeakMap<Shell, PastCommand[]>()
const historyLength = 50

const executeCommand = defineTool({
  name: 'execute_command',
  description:
    'Runs a command in a bash that keeps its folder, variables and functions from call to call. It begins in /workspace, has no input, reaches the web only where the variable https_proxy is set, and answers with output and errors, the exit code, and whether output is left out.',
  input: z.object({
    command: z.string().min(1).max(200_000).describe('One command, or several lines of bash.'),
    timeout: timeoutSeconds,
    output_format: outputFormat,
  }),
  output: commandAnswer,
  async call({ command, timeout, output_format }, context) {
    const shell = await context.shell()
    const result = await shell.execute(command, timeout * 1_000, context.signal)
    const history = histories.get(shell) ?? []
    histories.set(shell, [...history, { command, exit_code: result.exitCode }].slice(-historyLength))
    return toCommandAnswer(result, timeout, output_format)
  },
  toText: commandText,
})

const getCommandHistory = defineFormattedTool({
  name: 'get_command_history',
  description: 'Lists the last commands that were run in this terminal, the newest last, with their exit codes.',
  input: z.object({ count: z.int().min(1).max(historyLength).default(10).describe('At most how many.') }),
  output: z.object({ commands: z.array(z.object({ command: z.string(), exit_code: z.int() })) }),
  async call({ count }, context) {
    return { commands: (histories.get(await context.shell()) ?? []).slice(-count) }
  },
  toText: ({ commands }) =>
    commands.map(({ command, exit_code }) => `${command}\n[exit code ${exit_code}]`).join('\n\n') || 'No command was run yet.',
})

const capabilities: Readonly<Record<SandboxTier, string>> = {
  bubblewrap:
    'execute_command runs bash in a workspace of this task alone; files stay in /workspace until the task ends, at most 600 s a command. The web is there only where the variable https_proxy is set, requests of HTTP alone, at most 10 MB and 20 s each. There is no root. What is installed, "command -v NAME" says.',
  simulated: `execute_command simulates bash in a workspace of this task alone; files stay in /workspace until the task ends, at most 600 s a command. There is no network and no root. Its programs are simulated too: "command -v NAME" says which there are. ${differencesText()}`,
}

const getTerminalCapabilities = defineTool({
  name: 'get_terminal_capabilities',
  description: 'Says what the terminal can do, and what it cannot.',
  input: z.object({}),
  output: z.object({ capabilities: z.string() }),
  call: async (_, { tier }) => ({ capabilities: capabilities[tier] }),
  toText: ({ capabilities }) => capabilities,
})

export const terminalServer: ToolServer = {
  name: 'terminal-server',
  scope: 'terminal',
  description: 'Runs commands in a terminal.',
  needs: [],
  tools: [executeCommand, getCommandHistory, getTerminalCapabilities],
}
