import { startScript } from '../gateway/peers.ts'
import type { RunLoadOptions, RunLoadResult } from './run-load.ts'

export interface StartLoadOptions
  extends Pick<RunLoadOptions, 'load' | 'slots'>,
    Partial<Pick<RunLoadOptions, 'workers' | 'executor' | 'directory' | 'killAfterSeconds'>> {
  /** `plain`: without us. */
  readonly plain?: boolean
}

/** Runs a load in a process of its own, before an engine of its own. Rejects where a rollout did not end as planned. */
export async function startLoad({ plain = false, ...options }: StartLoadOptions): Promise<RunLoadResult> {
  await using upstream = await startScript<{ port: number }>('upstream.ts', [])
  const all: RunLoadOptions = { workers: 0, executor: {}, killAfterSeconds: null, ...options, upstreamPort: upstream.line.port }
  await using started = await startScript<RunLoadResult>(`../executor/${plain ? 'run-plain.ts' : 'run-load.ts'}`, [JSON.stringify(all)])
  const { line } = started
  process.stdout.write(`${options.load.count} rollouts${plain ? ' without us' : ''}: ${JSON.stringify(line)}\n`)
  if (line.failed > 0) throw new Error(`${line.failed} of ${options.load.count} rollouts did not end as planned.`)
  return line
}
