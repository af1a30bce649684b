import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { readRun } from '../run-reader.ts'

/**
 * Compares the writes that were acknowledged to workers with those in the run. Each returned line is a problem. If there is none, nothing
 * was lost or doubled, and no attempts were mixed. A write that was kept but not acknowledged is allowed.
 */
export function checkHistory(path: string, acknowledged: readonly string[]): string[] {
  const problems: string[] = []
  const database = new DatabaseSync(join(path, 'run.db'), { readOnly: true })
  const run = readRun(path)
  try {
    const turns = new Set(
      database
        .prepare("SELECT r.key || ' ' || t.attempt || ' ' || t.turn AS name FROM turns t JOIN rollouts r ON r.id = t.rollout")
        .all()
        .map(({ name }) => name),
    )
    const episodes = new Map(Array.from(run.episodes(), (episode) => [episode.rollout, episode]))
    const steps = new Map(run.steps().map((step) => [step.step, step.rollouts.join(' ')]))
    const results = new Set<string>()
    for (const line of acknowledged) {
      const [kind, name, ...rest] = line.split(' ') as [string, string, ...string[]]
      if (kind === 'turn' && !turns.has(`${name} ${rest.join(' ')}`)) problems.push(`lost: ${line}`)
      if (kind === 'result') {
        if (results.has(name)) problems.push(`acknowledged twice: ${line}`)
        results.add(name)
        if (episodes.get(name)?.attempt !== Number(rest[0])) problems.push(`lost: ${line}`)
      }
      if (kind === 'step' && steps.get(Number(name)) !== rest.join(' ')) problems.push(`lost: ${line}`)
    }
    for (const { rollout, attempt, trajectories } of episodes.values()) {
      const indices = trajectories.flatMap((trajectory) => trajectory.turns.map((turn) => `${turn.attempt}:${turn.index}`))
      if (indices.join() !== [0, 1, 2].map((index) => `${attempt}:${index}`).join()) problems.push(`mixed: ${rollout} has ${indices}`)
    }
    const trained = run.steps().flatMap((step) => step.rollouts)
    if (new Set(trained).size !== trained.length) problems.push('a rollout was trained twice')
    const [integrity] = Object.values(database.prepare('PRAGMA integrity_check').get()!)
    if (integrity !== 'ok') problems.push(`integrity: ${integrity}`)
    return problems
  } finally {
    run.close()
    database.close()
  }
}
