// The health of the machinery: what waits, what failed, what was tried again.
import type { RolloutRow, RunSummary } from '@aworld-train/core'
import { always, client, useLoaded } from './data.ts'
import { fixed, integer, seconds, visible } from './format.ts'
import { Process, useHealth } from './process.tsx'
import { hrefs, route } from './route.ts'
import { Columns, type Part, Share } from './shares.tsx'
import { Facts, Section } from './ui.tsx'

const waits = [
  ['agent', 'the rest: agent, requests, waiting for both', 't-grey'],
  ['tools', 'tools', 't-tool'],
  ['engine', 'model calls', 't-data'],
  ['queue', 'waiting for a slot', 't-line'],
] as const

/** Rollouts that run or wait, the longest first. */
async function readUnfinished(): Promise<readonly RolloutRow[]> {
  const [running, queued] = await Promise.all([
    client().rollouts({ status: 'running', limit: 50 }),
    client().rollouts({ status: 'queued', limit: 50 }),
  ])
  return [...running.rows, ...queued.rows]
}

export function Health({ summary }: { summary: RunSummary }) {
  const unfinished = useLoaded(`${route.value.run} unfinished`, readUnfinished, always)
  const measured = useHealth(summary)
  const { steps, rollouts, stopReasons, errors, warnings } = summary
  const total = (part: (typeof waits)[number][0]) => steps.reduce((sum, { waitMs }) => sum + waitMs[part], 0)
  const parts: Part[] = [...waits].reverse().map(([part, name, tone]) => ({ name, value: total(part), tone, text: seconds(total(part)) }))
  const whole = parts.reduce((sum, { value }) => sum + value, 0)
  const { count: repeated, first } = summary.repeated
  const last = steps.at(-1)
  const now = Date.now()
  const workerOf = new Map(measured?.workers.flatMap(({ name, assignments }) => assignments.map(({ key }) => [key, name] as const)))
  // The upper part is read first, so that nothing moves.
  if (measured === null) return null
  return (
    <>
      <div class="title">
        <h1>Health</h1>
        <Facts
          of={[
            ['waiting', integer(rollouts.queued)],
            ['running', integer(rollouts.running)],
            ['finished', integer(rollouts.done)],
            ['without a result', integer(rollouts.cancelled + rollouts.interrupted)],
            ['failed', integer(Object.values(errors).reduce((sum, { count }) => sum + count, 0))],
            ['tried again', integer(repeated)],
          ]}
        />
      </div>
      <div class="health">
        <Process {...measured} summary={summary} />
        <Section title="Where the time of rollouts went" note={`${seconds(whole)} over all training rollouts`}>
          <Share label="Time of rollouts" parts={parts} total={whole} />
          <Columns
            label="Time of a rollout in each step"
            tones={waits.map(([, , tone]) => tone)}
            rows={steps.map(({ waitMs, rollouts: count }) => waits.map(([part]) => waitMs[part] / Math.max(1, count)))}
            height={88}
          />
          {last && (
            <p class="more">
              A column is a step: the time of one rollout. In step {last.step} that was{' '}
              {seconds(waits.reduce((sum, [part]) => sum + last.waitMs[part], 0) / Math.max(1, last.rollouts))}, {fixed(last.turns, 1)}{' '}
              model calls each.
            </p>
          )}
        </Section>
        <Section title="How rollouts ended">
          <table class="rows plain">
            <tbody>
              {Object.entries(stopReasons)
                .sort((a, b) => b[1] - a[1])
                .map(([reason, count]) => {
                  const example = summary.incomplete.find(({ stopReason }) => stopReason === reason)
                  return (
                    <tr key={reason}>
                      <th scope="row">{reason.replaceAll('-', ' ')}</th>
                      <td>{integer(count)}</td>
                      <td>{example && <a href={hrefs.rollout(example.key)}>{example.key}</a>}</td>
                    </tr>
                  )
                })}
            </tbody>
          </table>
          {Object.keys(stopReasons).length === 0 && <p class="quiet">None has ended yet.</p>}
        </Section>
        <Section title="Errors" note="by code, with the first rollout">
          {Object.keys(errors).length === 0 ? (
            <p class="quiet">No rollout has one.</p>
          ) : (
            <table class="rows plain">
              <tbody>
                {Object.entries(errors).map(([code, { count, rollout, message }]) => (
                  <tr key={code}>
                    <th scope="row">
                      {code}
                      <small class="message-of">{visible(message.slice(0, 300))}</small>
                    </th>
                    <td>{integer(count)}</td>
                    <td>
                      <a href={hrefs.rollout(rollout)}>{rollout}</a>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Section>
        <Section title="Warnings">
          {warnings.length === 0 ? (
            <p class="quiet">The run raised none.</p>
          ) : (
            <table class="rows plain">
              <tbody>
                {warnings.map(({ code, count, message }) => (
                  <tr key={code}>
                    <th scope="row">
                      {code}
                      <small class="message-of">{visible(message)}</small>
                    </th>
                    <td>{integer(count)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Section>
        <Section title="Repeated attempts" note="after a failure that may pass">
          {repeated === 0 ? (
            <p class="quiet">Every rollout that ended did so in its first attempt.</p>
          ) : (
            <table class="rows plain">
              <tbody>
                {first.map((row) => (
                  <tr key={row.key}>
                    <th scope="row">
                      <a href={hrefs.rollout(row.key)}>{row.key}</a>
                    </th>
                    <td>{row.attempt + 1} attempts</td>
                    <td>{row.stopReason}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          {repeated > first.length && <p class="quiet">{integer(repeated - first.length)} more.</p>}
        </Section>
        {summary.status === 'running' && (
          <Section title="At work" note="up to fifty of each" class="at-work">
            <table class="rows plain">
              <tbody>
                {(unfinished.value ?? []).map((row) => (
                  <tr key={row.key}>
                    <th scope="row">
                      <a href={hrefs.rollout(row.key)}>{row.key}</a>
                      {workerOf.has(row.key) && <small> at {visible(workerOf.get(row.key)!)}</small>}
                      {row.attempt > 0 && <small>, attempt {row.attempt + 1}</small>}
                    </th>
                    <td>{row.status === 'queued' ? 'waiting' : row.status}</td>
                    <td>{row.turns === 1 ? '1 turn' : `${row.turns} turns`}</td>
                    <td>{seconds(Math.max(0, now - (row.startedAt ?? row.queuedAt)))}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Section>
        )}
      </div>
    </>
  )
}
