import type { DatabaseSync } from 'node:sqlite'

const [placeKey, timesKey] = ['last-finished', 'times-taken-back']
const stateNumber = (key: string) => `coalesce((SELECT CAST(value AS INTEGER) FROM state WHERE key = '${key}'), 0)`

/** SQL of the last place in the order of finishing, also if its rollout runs again. A reader that goes on after that place misses none. */
export const lastFinished = `max(coalesce((SELECT max(finished) FROM rollouts), 0), ${stateNumber(placeKey)})`

/** SQL of how often results were taken back. */
export const timesTakenBack = stateNumber(timesKey)

/** SQL that takes results of rollouts back, so that they run again. */
export const runAgain = `UPDATE rollouts SET status = 'interrupted', finished = NULL, ended_at = NULL, engine_ms = NULL, tools_ms = NULL, reward = NULL,
  stop_reason = NULL, turns = NULL, tool_calls = NULL, sampled_tokens = NULL, cost = NULL, error = NULL, answer = NULL`

/** Call this before results are taken back. Their places are then not given again, and readers that have added them up can tell. */
export function noteTakenBack(database: DatabaseSync): void {
  database.exec(`INSERT INTO state(key, value) VALUES ('${placeKey}', CAST(${lastFinished} AS TEXT)), ('${timesKey}', CAST(${timesTakenBack} + 1 AS TEXT))
    ON CONFLICT(key) DO UPDATE SET value = excluded.value`)
}
