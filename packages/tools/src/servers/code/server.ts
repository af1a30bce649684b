import { z } from 'zod'
import { defineTool, type ToolServer } from '../../tool-server.ts'
import { generatePythonCode } from './generate-python-code.ts'
import { runCode } from './run-code.ts'

const capabilities =
  'run_code runs Python, JavaScript and bash in the workspace. generate_python_code has a model write a Python program, which run_code then runs.'

export const codeServer: ToolServer = {
  name: 'intelligence-code-server',
  scope: 'code',
  description: 'Runs programs, and has a configured model write them.',
  needs: [
    { anyOf: ['code-model'], remedy: 'Set CODE_LLM_BASE_URL and CODE_LLM_MODEL_NAME for generate_python_code; run_code works without.' },
  ],
  tools: [
    generatePythonCode,
    runCode,
    defineTool({
      name: 'get_reasoning_capabilities',
      description: 'Says what this server can do.',
      input: z.object({}),
      output: z.object({ capabilities: z.string() }),
      call: async () => ({ capabilities }),
      toText: () => capabilities,
    }),
  ],
}
