import { expect, it } from 'vitest'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { openModelContext } from '../../testing/model-context.ts'
import { json } from '../../testing/stand-in.ts'
import { callServerTool } from '../../testing/tool-context.ts'
import { thinkServer } from './server.ts'

const says = (content: string) => json({ choices: [{ message: { role: 'assistant', content } }] })

describeToolServer({
  server: thinkServer,
  examples: { complex_problem_reasoning: { question: 'How long?' }, get_reasoning_capabilities: {} },
  open: (overrides) =>
    openModelContext('think', ({ messages }) => (/never/.test(messages[1]!.content) ? null : says('An answer.')), overrides),
  slow: { tool: 'complex_problem_reasoning', input: { question: 'never' } },
})

it('the model reads the question, the task it is of, and how to go about it', async () => {
  const context = await openModelContext('think', () => says('Two hours.'))
  const input = { question: 'How long?', original_task: 'Plan a trip.', reasoning_style: 'step-by-step', temperature: 0.7 }
  const { text, output } = await callServerTool(thinkServer, 'complex_problem_reasoning', input, context)
  expect([text, output['model']]).toEqual(['Two hours.', 'a-model'])
  const [request] = context.requests
  expect(request!.temperature).toBe(0.7)
  expect(request!.messages[0]!.content).toContain('numbered steps')
  expect(request!.messages[1]!.content).toMatch(/Plan a trip\.[\s\S]*How long\?/)
  await context.close()
})

it.each([
  ['refuses', json({ error: 'overloaded' }, 500), /^The model a-model answered with status 500: .*overloaded/],
  ['answers with nothing', says(''), /^The model a-model answered in a form that is not understood/],
] as const)('a model that %s is an error for the model that called, and no answer', async (_, answer, message) => {
  const context = await openModelContext('think', () => answer)
  const call = callServerTool(thinkServer, 'complex_problem_reasoning', { question: 'How long?' }, context)
  await expect(call).rejects.toMatchObject({ name: 'ToolError', message: expect.stringMatching(message) })
  await context.close()
})
