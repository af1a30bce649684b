import { randomUUID } from 'node:crypto'
import { type Environment, type EnvironmentLease, type LeasedSandbox, TrainError } from '@aworld-train/core'
import { type EnvironmentOptions, resolveOptions } from './environment-options.ts'
import { openRolloutLease } from './rollout-lease.ts'
import { createServerPool } from './server-pool.ts'

/**
 * Creates an environment of MCP servers. Each rollout has one lease, with its own directory and connections and, for a stdio server that is
 * not stateless, a fresh process. Its tools reject with CONFIG_INVALID, ENVIRONMENT_START_FAILED or ENVIRONMENT_TOOLS_CHANGED.
 */
export function createEnvironment(environmentOptions: EnvironmentOptions = {}): Environment {
  const options = resolveOptions(environmentOptions)
  const sandboxes = new Map<string, LeasedSandbox>()
  const onSandbox = (sandbox: LeasedSandbox) => void sandboxes.set(sandbox.url, sandbox)
  const pool = createServerPool(options, onSandbox)
  const run = randomUUID().slice(0, 8)
  const leases = new Set<EnvironmentLease>()
  let closed: Promise<void> | null = null

  return {
    lease(request) {
      if (closed) throw new TrainError('ENVIRONMENT_START_FAILED', 'The environment is closed; create another one.')
      const lease = openRolloutLease({
        request,
        run,
        pool,
        options,
        onClose: () => leases.delete(lease),
        onSandbox,
      })
      leases.add(lease)
      return lease
    },
    sandboxes: () => [...sandboxes.values()],
    counts: () => pool.counter.read(pool.live()),
    close() {
      closed ??= Promise.all([...leases].map((lease) => lease.close())).then(() => pool.close())
      return closed
    },
  }
}
