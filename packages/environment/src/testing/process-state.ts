import { existsSync, readFileSync } from 'node:fs'

export { isRunning as isAlive } from '@aworld-train/core'

/** Ids in the log of tool servers. A server that is ended while it starts may leave an empty log, or none. */
export const pidsIn = (log: string): number[] => (existsSync(log) ? readFileSync(log, 'utf8') : '').split('\n').filter(Boolean).map(Number)
