import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { segmentPath } from './segment-writer.ts'
import { noteTakenBack, runAgain } from './taken-back.ts'

interface TokenRow {
  readonly id: number
  readonly segment: number
  readonly byte_offset: number
  readonly bytes: number
  readonly crc32: number
}

interface LostRollout {
  readonly id: number
  readonly key: string
}

/**
 * Compares the tokens of every turn with their checksums, and repairs a run with damaged tokens so that no sample has them. A resumed run
 * repeats the steps after the last checkpoint from their rollouts. From the first of these that lost a rollout on, they are taken back,
 * with all that was sampled later. A rollout that a remaining step has trained, or that was evaluated before, keeps its text and its place
 * in the accounts; a later one loses its result and runs again. Resolves to a text for a person; `null` if no result lost tokens.
 */
export async function salvageRun(path: string, database: DatabaseSync): Promise<string | null> {
  const damaged = await damagedTurns(path, database)
  if (damaged.length === 0) return null
  database.exec('BEGIN IMMEDIATE')
  try {
    const summary = salvage(database, damaged)
    database.exec('COMMIT')
    return summary && `Segments of run ${path} are damaged: ${summary}`
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}

/** Finds rows of turns whose bytes have changed since they were written. Other bytes of a segment are not checked. */
async function damagedTurns(path: string, database: DatabaseSync): Promise<number[]> {
  const rows = database.prepare(
    'SELECT rowid AS id, segment, byte_offset, (suffix_length + 2 * completion_length) * 4 AS bytes, crc32 FROM turns WHERE segment > 0 ORDER BY segment',
  )
  const damaged: number[] = []
  let current = 0
  let content: Buffer = Buffer.alloc(0)
  for (const { id, segment, byte_offset, bytes, crc32: checksum } of rows.iterate() as Iterable<TokenRow>) {
    if (segment !== current) content = await readSegment(path, segment)
    current = segment
    const tokens = content.subarray(byte_offset, byte_offset + bytes)
    if (tokens.length !== bytes || crc32(tokens) !== checksum) damaged.push(id)
  }
  return damaged
}

async function readSegment(path: string, segment: number): Promise<Buffer> {
  try {
    return await readFile(segmentPath(join(path, 'segments'), segment))
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

function salvage(database: DatabaseSync, damaged: readonly number[]): string | null {
  const number = (sql: string, ...parameters: number[]) => Number(Object.values(database.prepare(sql).get(...parameters) ?? {})[0])
  // Segments are counted from 1, so 0 means that the tokens are nowhere.
  const mark = database.prepare('UPDATE turns SET segment = 0 WHERE rowid = ?')
  for (const id of damaged) mark.run(id)
  const lost = database
    .prepare(`SELECT DISTINCT r.id, r.key FROM rollouts r JOIN turns t ON t.rollout = r.id AND t.attempt = r.attempt
      WHERE r.status = 'done' AND t.segment = 0 AND t.rowid IN (SELECT value FROM json_each(?)) ORDER BY r.id`)
    .all(JSON.stringify(damaged)) as unknown as LostRollout[]
  if (lost.length === 0) return null
  const results = number('SELECT count(*) FROM episodes')
  noteTakenBack(database)

  const lastTrainedIn = (step: number) => number('SELECT coalesce(max(rollout), 0) FROM trained WHERE step <= ?', step)
  const committed = number('SELECT coalesce(max(step), 0) FROM steps')
  const checkpoint = number('SELECT coalesce(max(step), 0) FROM steps WHERE checkpoint IS NOT NULL')
  const first = lost.find(({ id }) => id > lastTrainedIn(checkpoint))
  let standing = committed
  if (first && committed > checkpoint) {
    standing = checkpoint
    while (standing + 1 < committed && lastTrainedIn(standing + 1) < first.id) standing++
  }
  // A group that was carried over is trained after others that were queued later.
  const carried = database
    .prepare('SELECT min(step) AS step FROM trained WHERE step > ? AND rollout IN (SELECT value FROM json_each(?))')
    .get(checkpoint, JSON.stringify(lost.map(({ id }) => id)))?.['step']
  if (typeof carried === 'number') standing = Math.min(standing, carried - 1)
  const later = database.prepare(
    "SELECT rollout AS id FROM trained WHERE step > ?1 UNION SELECT id FROM rollouts WHERE split = 'train' AND step > ?1",
  )
  const unsettled = new Set(later.all(standing).map(({ id }) => id as number))
  if (standing < committed) {
    database.prepare(`${runAgain} WHERE id > ? AND status = 'done'`).run(lastTrainedIn(standing + 1))
    database.prepare('DELETE FROM samples WHERE step > ?').run(standing)
    database.prepare('DELETE FROM trained WHERE step > ?').run(standing)
    database.prepare('DELETE FROM steps WHERE step > ?').run(standing)
  }
  const settled = lastTrainedIn(standing)
  const again = lost.filter(({ id }) => id > settled || unsettled.has(id))
  const repeat = database.prepare(`${runAgain} WHERE id = ?`)
  for (const { id } of again) repeat.run(id)
  database.exec("DELETE FROM episodes WHERE rollout IN (SELECT id FROM rollouts WHERE status = 'interrupted')")
  const keepText = database.prepare(`UPDATE episodes SET body = json_set(body, '$.trajectories', (
    SELECT json_group_array(json_set(value, '$.turns', json('[]'))) FROM json_each(body, '$.trajectories'))) WHERE rollout = ?`)
  for (const { id } of lost) keepText.run(id)
  return describe(lost, { results, again: again.length, takenBackTo: standing < committed ? standing : null })
}

interface Outcome {
  readonly results: number
  readonly again: number
  /** The last step that stays trained; `null` if no step was taken back. */
  readonly takenBackTo: number | null
}

const namedRollouts = 20

function describe(lost: readonly LostRollout[], { results, again, takenBackTo }: Outcome): string {
  const names = lost.slice(0, namedRollouts).map(({ key }) => key)
  const others = lost.length > namedRollouts ? ` and ${lost.length - namedRollouts} more` : ''
  const kept = lost.length - again
  const one = lost.length === 1
  const parts = [
    ...(kept > 0 ? [`${one ? 'It had' : `${kept} had`} been used before: text and reward stay, and stay counted`] : []),
    ...(again > 0 ? [`${one ? 'It runs' : `${again} run`} again, if the run still needs ${one ? 'it' : 'them'}`] : []),
    ...(takenBackTo === null ? [] : [`Later steps cannot be repeated without them, so that training goes on after step ${takenBackTo}`]),
  ]
  return `${lost.length} of ${results} rollouts lost tokens (${names.join(', ')}${others}). ${parts.join('. ')}.`
}
