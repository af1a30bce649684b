import { Agent, type WarmUpRequest } from 'aworld-train'
import { planner, reader } from '../../examples/source-readers/agents.ts'
import { addition, call, type Demonstrations, definitionsOf, resultsOf, unknown } from '../../examples/source-readers/demonstrations.ts'
import { numbers, pageOf, pick, pickCities, questionOf } from '../../examples/source-readers/tasks.ts'
import { warmUp } from '../../examples/source-readers/warm-up.ts'

/** One agent that opens every page itself. */
export const alone = new Agent({
  name: 'alone',
  systemPrompt: 'You add what the pages say.',
  tools: [...reader.tools, ...planner.tools],
  maxTurns: 4,
})

/** It forgets the last city as the planner does, and gives up as readers do. */
const reads: Demonstrations = {
  tools: definitionsOf(alone),
  right: 0.4,
  demonstrate(random, right) {
    const names = pickCities(random)
    const opened = right ? names : names.slice(0, -1)
    const found = opened.map(() => pick(random, numbers))
    const start = [
      { role: 'system' as const, content: alone.systemPrompt! },
      { role: 'user' as const, content: questionOf(names) },
    ]
    if (!right && random() < 0.4) return [...start, { role: 'assistant', content: unknown }]
    const pages = found.map((number) => pageOf(random, number))
    return [...start, ...call('open', ...opened.map((city) => ({ city }))), ...resultsOf(...pages), ...addition(random, found)]
  },
}

export const warmUpAlone = (request: WarmUpRequest) => warmUp(request, [reads], 600)
