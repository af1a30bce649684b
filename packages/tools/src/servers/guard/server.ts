import { z } from 'zod'
import { defineTool, type ToolServer } from '../../tool-server.ts'

const styles = ['detailed', 'concise', 'step-by-step'] as const
const instructions: Readonly<Record<(typeof styles)[number], string>> = {
  detailed: 'Look for every mistake, gap and unsupported step, and say what would make it sound.',
  concise: 'Name the one mistake that matters most, or say that there is none.',
  'step-by-step': 'Go through the reasoning step by step, and say of each whether it holds.',
}

/** Asks another model to check a line of reasoning before it is acted on. */
export const guardServer: ToolServer = {
  name: 'intelligence-guard-server',
  scope: 'models',
  description: 'Asks a configured model to check a line of reasoning.',
  needs: [{ anyOf: ['guard-model'], remedy: 'Set GUARD_LLM_BASE_URL and GUARD_LLM_MODEL_NAME.' }],
  tools: [
    defineTool({
      name: 'guarding_reasoning_process',
      description:
        'Checks a line of reasoning or a draft of an answer, and says what is wrong or missing in it. Give it the reasoning whole: it sees nothing else.',
      input: z.object({
        question: z.string().min(1).describe('The reasoning or the draft to check, with the facts it builds on.'),
        original_task: z.string().default('').describe('The task that the reasoning is for.'),
        temperature: z.number().min(0).max(2).default(0.1).describe('Sampling temperature.'),
        guarding_style: z.enum(styles).default('detailed').describe('How to check.'),
      }),
      output: z.object({ findings: z.string(), model: z.string() }),
      async call({ question, original_task, temperature, guarding_style }, context) {
        const model = await context.model('guard')
        const system = `You check the reasoning of others; you do not solve the task. ${instructions[guarding_style]}`
        const user = original_task === '' ? question : `The task as a whole:\n${original_task}\n\nThe reasoning to check:\n${question}`
        return { findings: await model.complete({ system, user, temperature }), model: model.name }
      },
      toText: ({ findings }) => findings,
    }),
    defineTool({
      name: 'get_guarding_capabilities',
      description: 'Says what guarding_reasoning_process checks, and in which styles.',
      input: z.object({}),
      output: z.object({ styles: z.array(z.string()) }),
      call: async () => ({ styles: [...styles] }),
      toText: ({ styles }) =>
        `guarding_reasoning_process takes reasoning of any kind and answers in text. guarding_style: ${styles.join(', ')}.`,
    }),
  ],
}
