// Workers that ran agents outside the process of the run, and the fate of each attempt.
import type { RolloutTrace, WorkerHealth, WorkerStatus } from '@aworld-train/core'
import { integer, seconds, visible } from './format.ts'
import { Section } from './ui.tsx'

const states: Readonly<Record<WorkerStatus, string>> = {
  connected: 'connected',
  draining: 'takes nothing more',
  away: 'connection lost',
  lost: 'lost',
}

/** The workers of a run at the Unix millisecond `at`. */
export function Workers({ workers, at }: { workers: readonly WorkerHealth[]; at: number }) {
  const there = workers.filter(({ status }) => status !== 'lost')
  const slots = there.reduce((sum, worker) => sum + worker.slots, 0)
  const assigned = there.reduce((sum, { assignments }) => sum + assignments.length, 0)
  return (
    <Section title="Workers" note={`${integer(assigned)} of ${integer(slots)} slots in use`} class="workers">
      <div class="scroll">
        <table class="rows plain">
          <thead>
            <tr>
              <th scope="col">worker</th>
              <th scope="col">state</th>
              <th scope="col">slots</th>
              <th scope="col">heard</th>
              <th scope="col">lost</th>
            </tr>
          </thead>
          <tbody>
            {workers.map(({ name, status, slots: own, assignments, heardAt, lostAttempts }) => (
              <tr key={name}>
                <th scope="row">{visible(name)}</th>
                <td class={status === 'away' || status === 'lost' ? 'down' : ''}>{states[status]}</td>
                <td>{status === 'lost' ? '–' : `${integer(assignments.length)} of ${integer(own)}`}</td>
                <td>{seconds(Math.max(0, at - heardAt))} ago</td>
                <td>{lostAttempts === 1 ? '1 attempt' : `${integer(lostAttempts)} attempts`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  )
}

/** The attempts of a rollout that took several, or that ran on a worker. */
export function Attempts({ trace: { row, attempts } }: { trace: RolloutTrace }) {
  if (attempts.length < 2 && attempts.every(({ worker }) => worker === null)) return null
  return (
    <Section title="Attempts" class="attempts" note="only the last one is trained">
      <div class="scroll">
        <table class="rows plain">
          <thead>
            <tr>
              <th scope="col">attempt</th>
              <th scope="col">ran</th>
              <th scope="col">calls</th>
              <th scope="col">tokens</th>
            </tr>
          </thead>
          <tbody>
            {attempts.map(({ attempt, worker, startedAt, endedAt, error, turns, sampledTokens }) => {
              const isLast = attempt === row.attempt
              return (
                <tr key={attempt}>
                  <th scope="row">
                    {attempt + 1}
                    {worker !== null && ` at ${visible(worker)}`}
                    <small class="message-of">
                      {error && (
                        <>
                          <b>{error.code}</b> {visible(error.message)}
                        </>
                      )}
                      {!error && (isLast ? (row.stopReason ?? row.status) : 'given up: its process ended, or it was cancelled')}
                    </small>
                  </th>
                  <td>{endedAt === null ? '–' : seconds(Math.max(0, endedAt - startedAt))}</td>
                  <td>{integer(turns)}</td>
                  <td>{integer(sampledTokens)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </Section>
  )
}
