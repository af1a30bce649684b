import { type GenerateRequest, type Turn, toTrainingSamples } from '@aworld-train/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { episodeOf } from './testing/episode-of.ts'
import { lookupCall, lookupTool, post, sessionRequest, startGateway, until } from './testing/start-gateway.ts'

interface Message {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }[]
  readonly tool_call_id?: string
}

/** Prints thinking only after the last question, as Qwen3 does. */
const thinkDropping = `{%- set ns = namespace(last=-1) %}{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content and loop.index0 > ns.last %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
{{- m.content or '' }}
{%- for c in m.tool_calls %}{{- '<tool_call>\\n{"name": ' + (c.function.name | tojson) + ', "arguments": ' + (c.function.arguments | tojson) + '}\\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`

/** A client's change to its history before a call, and the course of the call. */
const step = fc.record({
  /** The conversation that makes the call; they run in parallel. */
  conversation: fc.nat(2),
  change: fc.constantFrom(
    'none',
    'none',
    'none',
    'trim',
    'drop-reasoning',
    'replace-ids',
    'reserialise',
    'edit',
    'drop-empty',
    'foreign',
    'one-result',
    'fork',
    'fork',
  ),
  says: fc.constantFrom(
    'Plain.',
    ' padded \n',
    '',
    '<think>\nhm\n</think>\n\nThought through.',
    `<think>\nlook\n</think>\n\n${lookupCall('gold')}`,
    lookupCall('iron'),
    `${lookupCall('gold')}\n${lookupCall('iron')}`,
  ),
  cut: fc.option(fc.integer({ min: 1, max: 20 }), { freq: 5 }),
  ends: fc.constantFrom('answered', 'answered', 'answered', 'answered', 'hang-up'),
})
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

function changed(history: readonly Message[], { change }: Step, call: number): Message[] {
  const messages = history.map((message) => ({ ...message }))
  if (change === 'trim') return messages.map((message) => ({ ...message, content: message.content?.trim() ?? '' }))
  if (change === 'drop-reasoning') return messages.map((message) => ({ ...message, reasoning_content: undefined }))
  if (change === 'drop-empty') return messages.filter(({ role, content, tool_calls: calls }) => role !== 'assistant' || content || calls)
  if (change === 'fork' && messages.length > 2) return [...messages.slice(0, -1), { ...messages.at(-1)!, content: `Fork ${call}.` }]
  if (change === 'edit') return messages.map((message, index) => (index === 0 ? { ...message, content: `Edited ${call}.` } : message))
  if (change === 'foreign')
    return [...messages, { role: 'assistant', content: `Another model ${call}.` }, { role: 'user', content: 'And?' }]
  if (change === 'reserialise' || change === 'replace-ids') {
    const rename = (id: string) => (change === 'replace-ids' ? `${id}-${call}` : id)
    return messages.map((message) => ({
      ...message,
      ...(message.tool_call_id && { tool_call_id: rename(message.tool_call_id) }),
      ...(message.tool_calls && {
        tool_calls: message.tool_calls.map(({ id, function: { name, arguments: text } }) => ({
          id: rename(id),
          type: 'function',
          function: { name, arguments: change === 'reserialise' ? JSON.stringify(JSON.parse(text)) : text },
        })),
      }),
    }))
  }
  return messages
}

/** The next question, or results for the calls at the end. */
function followUp(answer: Message, { change }: Step, call: number): Message[] {
  if (!answer.tool_calls) return [{ role: 'user', content: `Next ${call}.` }]
  const results = answer.tool_calls.map(({ id }, index) => ({ role: 'tool', tool_call_id: id, content: `result ${call} ${index}` }))
  return change === 'one-result' ? results.slice(0, 1) : results
}

test.each(['template', 'loop', 'as-sampled'] as const)(
  'history %s: whatever clients do, a trained token was sampled with its logprob, and each is trained once or accounted for',
  async (history) => {
    const planned = new Map<string, Step>()
    // Every sampled token has a logprob of its own, by which it is followed from the engine to the training row.
    let drawn = 0
    const drawnBy = new Map<number, number>()
    /** Prompts as they were when the engine was asked. */
    const prompts = new Map<Int32Array, number[]>()
    const say = ({ affinity, random, promptTokenIds }: GenerateRequest) => {
      prompts.set(promptTokenIds, [...promptTokenIds])
      const { says, ends } = planned.get(`${affinity}:${random.turn}`)!
      const ids = [...started.chat.encode(says), ...started.engine.model.stopTokenIds]
      const logprobs = ids.map(() => -++drawn / 64)
      for (const [at, id] of ids.entries()) drawnBy.set(logprobs[at]!, id)
      return { text: says, logprobs, pieceSize: 4, ...(ends === 'hang-up' && { pieceDelayMs: 2 }) }
    }
    await using started = await startGateway({ say, history, template: thinkDropping })
    const { gateway, engine } = started
    let runs = 0
    const reached = { continued: 0, branched: 0, abandoned: 0 }

    const play = async (steps: readonly Step[]) => {
      const rollout = `random-${runs++}`
      const session = gateway.open(sessionRequest({ rollout }))
      const endpoint = session.endpoint('agent')
      const histories: Message[][] = [0, 1, 2].map((index) => [{ role: 'user', content: `Begin ${index}.` }])
      for (const [call, planStep] of steps.entries()) {
        planned.set(`${rollout}.0.agent:${call}`, planStep)
        const messages = changed(histories[planStep.conversation]!, planStep, call)
        const body = { model: 'any', messages, tools: [lookupTool], ...(planStep.cut !== null && { max_tokens: planStep.cut }) }
        const controller = new AbortController()
        const before = engine.sampledTokens()
        const answer = post(endpoint, body, { signal: controller.signal }).catch(() => null)
        if (planStep.ends === 'hang-up') {
          await Promise.race([until(() => engine.sampledTokens() > before), answer])
          controller.abort()
        }
        const response = await answer
        await until(() => gateway.counts().inFlight === 0)
        if (response?.status !== 200) continue
        const { message } = (response.json() as { choices: readonly { readonly message: Message }[] }).choices[0]!
        // After a fork the conversation goes on from where it was, so one turn is continued twice.
        if (planStep.change === 'fork') continue
        histories[planStep.conversation] = [...messages, message, ...followUp(message, planStep, call)]
      }
      return session.close()
    }

    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 9 }), async (steps) => {
        const before = engine.sampledTokens()
        const record = await play(steps)
        const { turns } = record[0]!
        checkTurns(turns)
        for (const { promptTokenIds } of turns) expect([...promptTokenIds]).toEqual(prompts.get(promptTokenIds))
        const { samples, untrained, sampled } = toTrainingSamples(episodeOf(record))
        expect(sampled).toBe(engine.sampledTokens() - before)
        const trained = samples.flatMap(({ tokenIds, lossMask, rolloutLogprobs }) =>
          Array.from(tokenIds, (id, at) => ({ id, logprob: rolloutLogprobs[at]!, mask: lossMask[at] })).filter(({ mask }) => mask === 1),
        )
        for (const { id, logprob } of trained) expect(drawnBy.get(logprob)).toBe(id)
        expect(new Set(trained.map(({ logprob }) => logprob)).size).toBe(trained.length)
        expect(trained.length + Object.values(untrained).reduce((sum, count) => sum + count, 0)).toBe(sampled)
        reached.continued += turns.filter(({ parent }) => parent !== null).length
        reached.branched += turns.filter(({ parent, branchReasons }) => parent === null && branchReasons[0] !== 'root').length
        reached.abandoned += untrained['abandoned-turn'] ?? 0
      }),
      { numRuns: 60 },
    )
    for (const count of Object.values(reached)) expect(count).toBeGreaterThan(5)
  },
)

/** Prompts extend the tokens sampled before them; equal prompts are turns of their own. */
function checkTurns(turns: readonly Turn[]): void {
  for (const [index, turn] of turns.entries()) {
    expect(turn.index).toBe(index)
    if (turn.parent === null) continue
    const parent = turns[turn.parent]!
    const prefix = [...parent.promptTokenIds, ...parent.completionTokenIds]
    expect(Array.from(turn.promptTokenIds.subarray(0, prefix.length))).toEqual(prefix)
    expect(turn.promptTokenIds.length).toBeGreaterThan(prefix.length)
    expect(parent.delivered).toBe('delivered')
  }
}
