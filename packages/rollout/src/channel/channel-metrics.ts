import { Counter, Gauge, type Registry } from 'prom-client'
import type { ChannelCounts } from './channel-types.ts'

type Values = Readonly<Record<string, number>>

/** Registers the metrics of a channel, read when they are asked for; labels are of closed lists. */
export function registerChannelMetrics(registry: Registry, counts: () => ChannelCounts): void {
  const common = (name: string, help: string) => ({ name: `aworld_train_channel_${name}`, help, registers: [registry] })

  function gauge(name: string, help: string, read: (counts: ChannelCounts) => number): void {
    new Gauge({
      ...common(name, help),
      collect() {
        this.set(read(counts()))
      },
    })
  }

  function counter(name: string, help: string, read: (counts: ChannelCounts) => number | Values, label?: string): void {
    new Counter({
      ...common(`${name}_total`, help),
      labelNames: label === undefined ? [] : [label],
      collect() {
        const now = read(counts())
        this.reset()
        if (typeof now === 'number') this.inc(now)
        else for (const [key, value] of Object.entries(now)) this.inc({ [label!]: key }, value)
      },
    })
  }

  gauge('connections', 'Open connections, those that are being greeted included.', ({ connections }) => connections)
  gauge('workers', 'Workers of trainers that are connected and welcome.', ({ workers }) => workers)
  gauge('open_rollouts', 'Submitted rollouts without a result.', ({ open }) => open)
  gauge('calls_in_flight', 'Model calls that trainers sample, or that wait for their connection.', ({ calls }) => calls)
  counter('frames', 'Frames by direction.', ({ frames }) => frames, 'direction')
  counter('frame_bytes', 'Bytes of those frames.', ({ bytes }) => bytes, 'direction')
  counter('rows', 'Rows of results that were sent; after a reconnect a result may be sent again.', ({ rows }) => rows)
  counter('row_tokens', 'Tokens with mask 1 in those rows.', ({ rowTokens }) => rowTokens)
  counter(
    'submissions',
    'What became of submissions: results sent, accepted or refused, and those that ended without one.',
    ({ outcomes }) => outcomes,
    'outcome',
  )
  counter('aborted_calls', 'Model calls that the service aborted, or that the engine of a trainer gave up.', ({ aborted }) => aborted, 'by')
  counter('reconnects', 'Workers that came back.', ({ reconnects }) => reconnects)
  counter('lost_connections', 'Connections lost with rollouts under way.', ({ lost }) => lost)
  counter('rejected', 'Connections of trainers that were not served.', ({ rejected }) => rejected)
}
