import { dirname } from 'node:path'
import { errorMessage, exitCodeOf } from '@aworld-train/core'
import { type StartedWorkerOptions, workerVariables } from '@aworld-train/training'
import { runAgentWorker } from './run-agent-worker.ts'

/**
 * A worker that a launcher has started. It exits with 2 if only another configuration would help, and with 3 if its coordinator is gone.
 */
const options = JSON.parse(process.env[workerVariables.options] ?? '{}') as StartedWorkerOptions
const token = process.env[workerVariables.token]
// Tools and commands of the agent do not need them.
for (const name of Object.values(workerVariables)) delete process.env[name]

const drain = new AbortController()
process.on('SIGTERM', () => drain.abort())
// A terminal sends this signal to its whole group, but the coordinator decides when its workers end.
process.on('SIGINT', () => {})
// The end of standard input means that the parent process is gone, however it ended.
process.stdin
  .on('end', () => {
    process.stderr.write(
      `Worker "${options.name}" ends with its standard input; a launcher keeps that open as long as its coordinator lives.\n`,
    )
    process.exit(1)
  })
  .resume()

try {
  await runAgentWorker({
    ...options,
    ...(token !== undefined && { token }),
    directory: dirname(options.agent),
    signal: drain.signal,
    onWarning: ({ message }) => process.stderr.write(`${message}\n`),
  })
} catch (error) {
  process.stderr.write(`${errorMessage(error)}\n`)
  process.exitCode = exitCodeOf(error)
}
process.stdin.destroy()
