import { z } from 'zod'
import { defineTool, type ToolServer } from '../../tool-server.ts'

const styles = ['detailed', 'concise', 'step-by-step'] as const
const instructions: Readonly<Record<(typeof styles)[number], string>> = {
  detailed: 'Take the problem apart, weigh the approaches against each other, and check the one that you follow.',
  concise: 'Give the argument in as few steps as it needs.',
  'step-by-step': 'Argue in numbered steps, and check each before the next.',
}

/** Asks a stronger model to reason about a hard question. */
export const thinkServer: ToolServer = {
  name: 'intelligence-think-server',
  scope: 'models',
  description: 'Asks a configured model to reason about a hard question.',
  needs: [{ anyOf: ['think-model'], remedy: 'Set THINK_LLM_BASE_URL and THINK_LLM_MODEL_NAME.' }],
  tools: [
    defineTool({
      name: 'complex_problem_reasoning',
      description:
        'Reasons about a hard question (mathematics, logic, puzzles, planning) with a model made for it. Give it every fact it needs: it sees nothing else.',
      input: z.object({
        question: z.string().min(1).describe('The question, with every fact that it needs.'),
        original_task: z.string().default('').describe('The task that the question is a part of.'),
        temperature: z.number().min(0).max(2).default(0.3).describe('Sampling temperature.'),
        reasoning_style: z.enum(styles).default('detailed').describe('How to go about it.'),
      }),
      output: z.object({ answer: z.string(), model: z.string() }),
      async call({ question, original_task, temperature, reasoning_style }, context) {
        const model = await context.model('think')
        const system = `You reason about hard problems. ${instructions[reasoning_style]} End with the answer alone on a last line.`
        const user = original_task === '' ? question : `The task as a whole:\n${original_task}\n\nThe question:\n${question}`
        return { answer: await model.complete({ system, user, temperature }), model: model.name }
      },
      toText: ({ answer }) => answer,
    }),
    defineTool({
      name: 'get_reasoning_capabilities',
      description: 'Says what complex_problem_reasoning can be asked, and in which styles.',
      input: z.object({}),
      output: z.object({ styles: z.array(z.string()) }),
      call: async () => ({ styles: [...styles] }),
      toText: ({ styles }) =>
        `complex_problem_reasoning takes a question of any kind and answers in text. reasoning_style: ${styles.join(', ')}.`,
    }),
  ],
}
