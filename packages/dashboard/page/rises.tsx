// Rewards on one line from 0 to 1, with their intervals.
import type { RewardMeasure } from '@aworld-train/core'
import { fixed, range, visible } from './format.ts'

type Rises = { readonly only: RewardMeasure | null } | { readonly before: RewardMeasure; readonly after: RewardMeasure | null }

/** A row of rewards: before and after training, or that of one evaluation. */
export function Rise({ name, main, ...of }: Rises & { readonly name: string; readonly main?: boolean }) {
  const at = (value: number) => `${100 * Math.max(0, Math.min(1, value))}%`
  const [before, after] = 'only' in of ? [of.only, null] : [of.before, of.after]
  if (before === null) return <Missing name={name} />
  const last = after ?? before
  return (
    <tr class={main ? 'main' : ''}>
      <th scope="row" title={visible(name)}>
        {visible(name)}
        <small> {before.rollouts}</small>
      </th>
      <td>
        <div class="rise" role="img" aria-label={after ? `from ${fixed(before.reward)} to ${fixed(after.reward)}` : fixed(before.reward)}>
          <i class="path" style={{ left: at(Math.min(before.reward, last.reward)), width: at(Math.abs(last.reward - before.reward)) }} />
          <i class="whisker" style={{ left: at(before.interval[0]), width: at(before.interval[1] - before.interval[0]) }} />
          {after && <i class="whisker after" style={{ left: at(after.interval[0]), width: at(after.interval[1] - after.interval[0]) }} />}
          <i class="end" style={{ left: at(before.reward) }} />
          {after && <i class="end after" style={{ left: at(after.reward) }} />}
        </div>
      </td>
      <td>{fixed(before.reward)}</td>
      <td>{'only' in of ? <small>{range(before.interval, 2)}</small> : <b>{fixed(after?.reward)}</b>}</td>
    </tr>
  )
}

/** A row that has its place, and no reward yet. */
const Missing = ({ name }: { name: string }) => (
  <tr>
    <th scope="row" title={visible(name)}>
      {visible(name)}
    </th>
    <td>
      <div class="rise" />
    </td>
    <td>–</td>
    <td />
  </tr>
)

export const RiseHead = ({ of }: { of: readonly string[] }) => (
  <thead>
    <tr>
      <th scope="col">tasks</th>
      <th scope="col">
        <span>0</span>
        <span>1</span>
      </th>
      {of.map((name) => (
        <th scope="col" key={name}>
          {name}
        </th>
      ))}
    </tr>
  </thead>
)
