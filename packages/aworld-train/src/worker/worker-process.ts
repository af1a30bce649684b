import { dirname } from 'node:path'
import { errorMessage, TrainError } from '@aworld-train/protocol'
import { type StartedWorkerOptions, workerVariables } from '@aworld-train/run'
import { runAgentWorker } from './run-agent-worker.ts'

/** A worker that a launcher has started. It ends with 2 where only another configuration would help, and with 3 where its coordinator is gone. */
const options = JSON.parse(process.env[workerVariables.options] ?? '{}') as StartedWorkerOptions
const token = process.env[workerVariables.token]
// Tools and commands of the agent have no use for them.
for (const name of Object.values(workerVariables)) delete process.env[name]

const drain = new AbortController()
process.on('SIGTERM', () => drain.abort())
// A terminal sends this to its whole group; the coordinator says what becomes of its workers.
process.on('SIGINT', () => {})
// The process that started this one is gone, however it ended.
process.stdin.on('end', () => process.exit(1)).resume()

try {
  await runAgentWorker({ ...options, ...(token !== undefined && { token }), directory: dirname(options.agent), signal: drain.signal })
} catch (error) {
  process.stderr.write(`${errorMessage(error)}\n`)
  process.exitCode = exitCodeOf(error)
}
process.stdin.destroy()

function exitCodeOf(error: unknown): number {
  if (!(error instanceof TrainError)) return 1
  if (error.code === 'COORDINATOR_UNREACHABLE') return 3
  return error.boundary === 'config' || error.code === 'AGENT_INVALID' ? 2 : 1
}
