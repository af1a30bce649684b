import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadChatModel, type Tool, toWarmUpSamples } from 'aworld-train'
import { expect, it, onTestFinished } from 'vitest'
import { makeTinyModel } from './support/tiny-model.ts'
import { episodesOf, makeProject, openTrainer } from './support/tiny-project.ts'

it('a demonstration has the prompt, to the token, that the gateway asks the policy of a rollout with', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'aworld-train-warm-up-'))
  onTestFinished(() => rm(parent, { recursive: true, force: true, maxRetries: 3 }))
  const model = await makeTinyModel(join(parent, 'model'), { contextLength: 2048 })
  const project = await makeProject(parent, model, {
    files: {
      'agent.ts': `import { Agent, tool } from 'aworld-train'
        import { z } from 'zod'
        export const half = tool({
          name: 'half',
          description: 'Halves a number.',
          parameters: z.object({ number: z.int().min(0).describe('What to halve'), round: z.enum(['up', 'down']).optional() }),
          execute: ({ number }) => number / 2,
        })
        export const agent = new Agent({ name: 'tiny', systemPrompt: 'Answer.', tools: [half] })`,
    },
  })
  await (await openTrainer(project, { steps: 1 })).train()
  const [episode] = await episodesOf(project)
  const [turn] = episode!.trajectories[0]!.turns

  const { half } = (await import(join(project.folder, 'agent.ts'))) as { half: Tool }
  const { eos_token_id: stop } = JSON.parse(await readFile(join(model, 'generation_config.json'), 'utf8')) as { eos_token_id: number }
  const chat = await loadChatModel({ directory: model, stopTokenIds: [stop].flat() })
  const task = episode!.messages.find(({ role }) => role === 'user')!
  const messages = [{ role: 'system' as const, content: 'Answer.' }, task, { role: 'assistant' as const, content: 'yes' }]
  const [sample] = toWarmUpSamples({ chat, messages, tools: [half.definition] })
  expect([...sample!.tokenIds.filter((_, index) => sample!.lossMask[index] === 0)]).toEqual([...turn!.promptTokenIds])
  expect(chat.decode(sample!.tokenIds)).toContain('"minimum": 0')
})
