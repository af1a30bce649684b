import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { defineTool } from '../../tool-server.ts'

const styles = {
  minimal: 'as short as it can be',
  documented: 'with comments where they help a reader',
  verbose: 'with comments on every step, and errors handled',
} as const

/** The first fenced block of an answer, or the whole answer if there is none. */
function codeOf(answer: string): string {
  return (/```(?:python|py)?[^\n]*\n(?<code>.*?)```/s.exec(answer)?.groups?.['code'] ?? answer).trim()
}

/** Asks a model for a Python program, and saves it in the workspace if a path is named. */
export const generatePythonCode = defineTool({
  name: 'generate_python_code',
  description:
    'Writes a Python program for a task with a model made for it. It runs nothing; run the program with run_code or execute_command.',
  input: z.object({
    task_description: z.string().min(1).describe('What the program shall do.'),
    requirements: z.string().default('').describe('Libraries, formats or limits that it has to keep to.'),
    context: z.string().default('').describe('Data, code or facts that it builds on.'),
    temperature: z.number().min(0).max(2).default(0.1).describe('Sampling temperature.'),
    code_style: z.enum(['minimal', 'documented', 'verbose']).default('documented').describe('How to write it.'),
    save_to_file_path: z.string().optional().describe('Path in the workspace to write the program to.'),
  }),
  output: z.object({ code: z.string(), model: z.string(), saved_to: z.string().nullable() }),
  async call({ task_description, requirements, context: facts, temperature, code_style, save_to_file_path }, context) {
    const model = await context.model('code')
    const system = `You write Python 3 programs. Answer with one fenced block that holds the whole program, ${styles[code_style]}, and nothing else.`
    const parts = [task_description, requirements && `Requirements:\n${requirements}`, facts && `Context:\n${facts}`]
    const code = codeOf(await model.complete({ system, user: parts.filter(Boolean).join('\n\n'), temperature }))
    if (code === '') throw new ToolError(`The model ${model.name} answered without a program; describe the task in more detail.`)
    if (save_to_file_path !== undefined) await context.workspace.put(save_to_file_path, Buffer.from(`${code}\n`), context.signal)
    return { code, model: model.name, saved_to: save_to_file_path ?? null }
  },
  toText: ({ code, saved_to }) => (saved_to === null ? code : `${code}\n\nSaved to ${saved_to}.`),
})
