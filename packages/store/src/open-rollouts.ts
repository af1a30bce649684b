import type { DatabaseSync } from 'node:sqlite'
import { preciseNow } from '@aworld-train/core'

/** Gives rollouts without a result the status of those that no process works on. */
export function endOpenRollouts(database: DatabaseSync, status: 'cancelled' | 'interrupted'): void {
  database
    .prepare("UPDATE rollouts SET status = ?, ended_at = ? WHERE status <> 'done' AND status IN ('queued', 'running')")
    .run(status, status === 'cancelled' ? preciseNow() : null)
}
