import type { EnvironmentStatus } from '@aworld-train/core'
import { toTable } from '../serve/print-table.ts'

const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`

/** The status of an environment for people: its address, the limits of its jail, its servers with their missing parts, and its leases. */
export function statusText({ url, tier, notices, servers, leases, calls, net }: EnvironmentStatus): string {
  const running = leases.reduce((sum, lease) => sum + lease.running, 0)
  const rows: (readonly [string, string])[] = [
    ['address', url],
    ['sandbox', tier],
    ...notices.map((notice) => ['', notice] as const),
    ['leases', leases.length === 0 ? 'none' : `${plural(leases.length, 'lease')}, ${plural(running, 'call')} running`],
    ...leases.flatMap(({ rollout, desktopUrl }) => (desktopUrl === undefined ? [] : [['desktop', `${desktopUrl} (${rollout})`] as const])),
    ['calls', `${calls.total}, ${plural(calls.errors, 'error')}`],
    ['web of leases', `${plural(net.requests, 'request')}, ${net.refused} refused, ${plural(net.webSockets, 'WebSocket')} among them`],
  ]
  const tools = servers.map(({ name, tools, missing }) => [name, [plural(tools.length, 'tool'), ...missing].join('; ')] as const)
  return `${toTable(rows)}\n${toTable(tools)}`
}
