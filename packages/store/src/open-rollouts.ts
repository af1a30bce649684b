import type { DatabaseSync } from 'node:sqlite'
import { preciseNow } from '@aworld-train/core'

/** Marks rollouts without a result as no longer worked on. */
export function endOpenRollouts(database: DatabaseSync, status: 'cancelled' | 'interrupted'): void {
  database
    .prepare("UPDATE rollouts SET status = ?, ended_at = ? WHERE status <> 'done' AND status IN ('queued', 'running')")
    .run(status, status === 'cancelled' ? preciseNow() : null)
}
