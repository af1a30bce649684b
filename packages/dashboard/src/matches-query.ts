import type { RolloutPage, RolloutQuery, RolloutRow } from '@aworld-train/core'

/** Whether a rollout matches a query, whatever the bounds of the page. */
function matchesQuery(row: RolloutRow, query: RolloutQuery): boolean {
  const { split, step, group, taskId, kind, status, stopReason, minReward, maxReward, finishedAfter } = query
  return (
    (split === undefined || row.split === split) &&
    (step === undefined || row.step === step) &&
    (group === undefined || row.group === group) &&
    (taskId === undefined || row.taskId === taskId) &&
    (kind === undefined || row.kind === kind) &&
    (status === undefined || row.status === status) &&
    (stopReason === undefined || row.stopReason === stopReason) &&
    (minReward === undefined || (row.reward !== null && row.reward >= minReward)) &&
    (maxReward === undefined || (row.reward !== null && row.reward <= maxReward)) &&
    (finishedAfter === undefined || (row.finished !== null && row.finished > finishedAfter))
  )
}

/** One page of rows, which are in the order in which they were queued. `after` and `next` are the key of a page's last row. */
export function toPage(rows: readonly RolloutRow[], query: RolloutQuery): RolloutPage {
  const matching = rows.filter((row) => matchesQuery(row, query))
  if (query.finishedAfter !== undefined) matching.sort((a, b) => a.finished! - b.finished!)
  const start = query.after === undefined ? 0 : matching.findIndex(({ key }) => key === query.after) + 1
  const limit = query.limit ?? 500
  const page = matching.slice(start, start + limit)
  return { rows: page, next: matching.length > start + limit ? page.at(-1)!.key : null }
}
