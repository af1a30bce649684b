import { type RunEvent, TrainError, toTrainError } from '@aworld-train/core'
import type { OpenDashboard } from '@aworld-train/dashboard'

/** Options of a run's dashboard. It is served on loopback, to clients with the token in its address, until the training ends. */
export interface RunDashboardOptions {
  /** Default: any free port. */
  readonly port?: number | undefined
  /** Called with the address. By default, a line with it goes to stderr. */
  readonly onUrl?: ((url: string) => void) | undefined
}

export interface RunDashboard {
  /** Passes every event on, and serves the run when it begins. */
  onEvent(event: RunEvent): void
  close(): Promise<void>
}

const printUrl = (url: string) => void process.stderr.write(`watch ${url}\n`)

/**
 * The dashboard of a run that this process trains. If it cannot be served, such as on a port in use, a warning gives the reason and the run
 * continues. Throws CONFIG_INVALID.
 */
export function createRunDashboard(options: true | RunDashboardOptions, onEvent: (event: RunEvent) => void): RunDashboard {
  const { port = 0, onUrl = printUrl, ...others } = options === true ? {} : options
  if (typeof options === 'string' || !(Number.isInteger(port) && port >= 0 && port <= 65_535) || Object.keys(others).length > 0)
    throw new TrainError('CONFIG_INVALID', 'AgentTrainer: "dashboard" is true, false or { port, onUrl }, with a port from 0 to 65535.')
  let opening: Promise<OpenDashboard | null> | null = null

  async function open(path: string): Promise<OpenDashboard | null> {
    try {
      // The module is loaded only if a dashboard is opened.
      const { openDashboard } = await import('@aworld-train/dashboard')
      const opened = await openDashboard({ runs: [path], port })
      onUrl(opened.url)
      return opened
    } catch (error) {
      const { code, message } = toTrainError(error, 'GATEWAY_FAILED')
      onEvent({ type: 'warning-raised', at: Date.now(), code, message: `The dashboard is not served: ${message}` })
      return null
    }
  }

  return {
    onEvent(event) {
      onEvent(event)
      if (event.type === 'run-start') opening ??= open(event.path)
    },
    async close() {
      const opened = await opening
      opening = null
      await opened?.close()
    },
  }
}
