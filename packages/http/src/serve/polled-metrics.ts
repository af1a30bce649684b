import { Counter, Gauge, type Registry } from 'prom-client'

/** A number, or a number for each value of a label. */
type Values = number | Readonly<Record<string, number>>

/** Adds metrics to `registry` that are read when asked for. With `label` there is one value for each of its few values. */
export interface PolledMetrics {
  gauge(name: string, help: string, read: () => Values, label?: string): void
  /** `name` comes without its ending `_total`. */
  counter(name: string, help: string, read: () => Values, label?: string): void
}

export function createPolledMetrics(registry: Registry, prefix: string): PolledMetrics {
  const common = (name: string, help: string, label?: string) => ({
    name: `${prefix}${name}`,
    help,
    labelNames: label === undefined ? [] : [label],
    registers: [registry],
  })
  const entries = (values: Values, label = ''): (readonly [Record<string, string>, number])[] =>
    typeof values === 'number' ? [[{}, values]] : Object.entries(values).map(([key, value]) => [{ [label]: key }, value])
  return {
    gauge(name, help, read, label) {
      new Gauge({
        ...common(name, help, label),
        collect() {
          this.reset()
          for (const [labels, value] of entries(read(), label)) this.set(labels, value)
        },
      })
    },
    counter(name, help, read, label) {
      new Counter({
        ...common(`${name}_total`, help, label),
        collect() {
          this.reset()
          for (const [labels, value] of entries(read(), label)) this.inc(labels, value)
        },
      })
    },
  }
}
