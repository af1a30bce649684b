// What each of several trained agents did in a step.
import { fixed, integer, percent, visible } from './format.ts'

/** A metric of a role or of a policy: its parts as `role/NAME/METRIC` has them. */
export function partsOf(key: string): { readonly kind: string; readonly name: string; readonly metric: string } | null {
  const [, kind, name, metric] = /^(role|policy)\/(.+)\/([^/]+)$/s.exec(key) ?? []
  return kind && name && metric ? { kind, name, metric } : null
}

interface RolesProps {
  /** Metrics of the step. */
  readonly metrics: Readonly<Record<string, number>>
  /** The policy of each agent, if there are several. */
  readonly policyOfAgent: Readonly<Record<string, string>>
}

/** A row for each role; nothing if the step has none. */
export function Roles({ metrics, policyOfAgent }: RolesProps) {
  const parts = Object.keys(metrics).flatMap((key) => partsOf(key) ?? [])
  const names = new Set(parts.filter(({ kind }) => kind === 'role').map(({ name }) => name))
  if (names.size === 0) return null
  return (
    <table class="rows plain">
      <thead>
        <tr>
          <th scope="col">agent</th>
          <th scope="col">reward</th>
          <th scope="col" class="wide">
            groups that teach
          </th>
          <th scope="col">turns</th>
          <th scope="col">malformed</th>
          <th scope="col">tokens a turn</th>
        </tr>
      </thead>
      <tbody>
        {[...names].map((name) => {
          const of = (metric: string) => metrics[`role/${name}/${metric}`] ?? 0
          const turns = of('turns')
          return (
            <tr key={name}>
              <th scope="row">
                {visible(name)}
                {policyOfAgent[name] !== undefined && <small> {visible(policyOfAgent[name])}</small>}
              </th>
              <td>
                <b>{fixed(metrics[`role/${name}/reward`])}</b>
              </td>
              <td class="wide">{integer(of('groupsWithVariance'))}</td>
              <td>{integer(turns)}</td>
              <td>{turns === 0 ? '–' : percent(of('malformedTurns') / turns, 1)}</td>
              <td>{turns === 0 ? '–' : fixed(of('sampledTokens') / turns, 1)}</td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}
