import { createInterface } from 'node:readline'
import { openCoordinator } from './open-coordinator.ts'

/** A coordinator in a process of its own. It starts a waiting rollout for each line of its input, and lives until it is killed. */
const { folder, executor } = JSON.parse(process.argv[2] ?? '{}') as { folder: string; executor: object }
const { run } = await openCoordinator(folder, executor)
createInterface(process.stdin).on('line', (key) => void run(key, { waits: true }))
