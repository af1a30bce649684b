// The modules and not the package: the rest of it takes a third of the start of a process, and tests start dozens.
import { createAttemptExecutor } from '../packages/rollout/src/attempt-executor.ts'
import { memoryEnvironment } from '../packages/rollout/src/testing/memory-environment.ts'
import { runWorker } from '../packages/rollout/src/workers/run-worker.ts'

/** A worker whose agent asks its model twice, with a while between that its task names in milliseconds. */
const [url, name] = process.argv.slice(2) as [string, string]
const drain = new AbortController()
process.on('SIGTERM', () => drain.abort())
process.stdin.on('end', () => process.exit(1)).resume()

await runWorker({
  ...{ url, name, slots: 2, agent: { hash: 'agent-1', parts: {} }, token: 'secret', signal: drain.signal },
  openExecutor: () =>
    createAttemptExecutor({
      environment: memoryEnvironment(),
      abandonAfterMs: 50,
      program: {
        agents: [{ name: 'agent', trainable: true }],
        async run(task, context) {
          const { baseUrl } = context.policy()
          const messages: { role: string; content: string }[] = []
          for (let turn = 0; turn < 2; turn++) {
            messages.push({ role: 'user', content: `${task.input} ${turn}` })
            const body = JSON.stringify({ messages })
            const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', body, signal: context.signal })
            if (!response.ok) throw new Error(await response.text())
            messages.push({ role: 'assistant', content: 'ja' })
            await response.text()
            await new Promise((resolve) => setTimeout(resolve, Number(task.data['waitMs'])))
          }
          return { answer: 'ja', messages: [] }
        },
      },
    }),
  onState: (state) => process.stdout.write(`${state}\n`),
})
process.stdin.destroy()
