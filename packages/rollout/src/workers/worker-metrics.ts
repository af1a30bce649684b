import type { WorkerHealth } from '@aworld-train/core'
import { createPolledMetrics } from '@aworld-train/http'
import type { Registry } from 'prom-client'

/** Registers the metrics of workers in other processes; labels are of closed lists. */
export function registerWorkerMetrics(registry: Registry, rows: () => readonly WorkerHealth[]): void {
  const { gauge } = createPolledMetrics(registry, 'aworld_train_worker_')
  const sum = (numberOf: (row: WorkerHealth) => number) => rows().reduce((total, row) => total + numberOf(row), 0)
  const isHere = ({ status }: WorkerHealth) => status === 'connected' || status === 'draining'
  const statuses = () => {
    const counts = { connected: 0, draining: 0, away: 0, lost: 0 }
    for (const { status } of rows()) counts[status] += 1
    return counts
  }
  gauge('processes', 'Workers by where they stand.', statuses, 'status')
  gauge('slots', 'Attempts that the connected ones run at once.', () => sum((row) => (isHere(row) ? row.slots : 0)))
  gauge('attempts', 'Attempts that they have.', () => sum(({ assignments }) => assignments.length))
  gauge('lost_attempts', 'Attempts that were lost with those that are shown.', () => sum(({ lostAttempts }) => lostAttempts))
}
