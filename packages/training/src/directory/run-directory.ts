import { rm } from 'node:fs/promises'
import { type LeasedSandbox, type RunEvent, type RunManifest, type RunReport, TrainError, toTrainError } from '@aworld-train/core'
import { type OwnedRunStore, openRunStore, resolveRun, toStoreError } from '@aworld-train/store'
import { firstFailure } from './first-failure.ts'
import { runVersions } from './run-files.ts'
import { createWarningTally } from './warning-tally.ts'

const warningsKey = 'warnings'
const tiersKey = 'tiers'

export interface RunDirectoryRequest {
  readonly runPath: string
  /** Default: a training. */
  readonly kind?: RunManifest['kind']
  /** First part of the folder's name. */
  readonly name: string
  /** Runs of equal hash are runs of the same command. */
  readonly configurationHash: string
  /** Hashes of the parts of the configuration hash, by name; kept in the manifest. */
  readonly inputs?: Readonly<Record<string, string>> | undefined
  /** Kept in the manifest of a new run. */
  readonly provenance: Readonly<Record<string, unknown>>
  /** The sandboxes that run commands of the rollouts. */
  readonly sandboxes: readonly LeasedSandbox[]
  readonly options: {
    /** Starts a new run even if an unfinished one of equal hash exists. */
    readonly fresh?: boolean | undefined
    /** Name or path of the run to resume. */
    readonly resume?: string | undefined
    readonly onEvent?: ((event: RunEvent) => void) | undefined
  }
  readonly signal: AbortSignal
}

export interface RunDirectory {
  readonly path: string
  readonly resumed: boolean
  readonly store: OwnedRunStore
  /** Keeps an event in the run and hands it to the caller's `onEvent`. */
  emit(event: RunEvent): void
  /** The warnings in the events of all processes of the run. */
  warnings(): RunReport['warnings']
  /** Reports that everything the run needs is open. From here on the directory stays, however the run ends. */
  started(): void
}

/**
 * Starts or resumes a run and works in it as its owner. An error of the work ends the run with a `run-end` event. A new run that cannot
 * start leaves nothing.
 */
export async function inRunDirectory<T>(request: RunDirectoryRequest, work: (run: RunDirectory) => Promise<T>): Promise<T> {
  const { runPath, kind, name, configurationHash, inputs, options, signal } = request
  const { path, resumed } = await resolveRun({ runPath, name, configurationHash, inputs, fresh: options.fresh, resume: options.resume })
  let started = false
  try {
    await using stack = new AsyncDisposableStack()
    const store = stack.adopt(
      await openRunStore({
        path,
        manifest: {
          kind,
          name,
          configurationHash,
          versions: runVersions(),
          provenance: { ...request.provenance, inputs, sandboxes: request.sandboxes },
        },
      }),
      (each) => each.close(),
    )
    await keepTiers(store, request.sandboxes)
    const tally = createWarningTally(store.getState(warningsKey) as RunReport['warnings'] | undefined)
    const emit = (event: RunEvent) => {
      store.appendEvent(event)
      tally.read(event)
      // An error of the store reaches those who need the store.
      if (event.type === 'warning-raised') store.setState(warningsKey, tally.warnings()).catch(() => {})
      options.onEvent?.(event)
    }
    if (store.damage !== null) emit({ type: 'warning-raised', at: Date.now(), code: 'SEGMENT_DAMAGED', message: store.damage })
    try {
      return await work({ path, resumed, store, emit, warnings: tally.warnings, started: () => (started = true) })
    } catch (thrown) {
      const failure = toRunFailure(firstFailure(thrown), path)
      const end = signal.aborted ? { status: 'stopped' as const } : { status: 'failed' as const, error: failure.toRecord() }
      emit({ type: 'run-end', at: Date.now(), ...end })
      throw failure
    }
  } catch (error) {
    if (!resumed && !started && !signal.aborted) await rm(path, { recursive: true, force: true })
    throw firstFailure(error)
  }
}

/** Throws CONFIG_INVALID if the run began in another sandbox tier, because all rollouts of a run see the same world. */
async function keepTiers(store: OwnedRunStore, sandboxes: readonly LeasedSandbox[]): Promise<void> {
  const tiers = [...new Set(sandboxes.map(({ tier }) => tier))].sort()
  const earlier = store.getState(tiersKey) as string[] | undefined
  if (earlier === undefined) return await store.setState(tiersKey, tiers)
  if (earlier.join() === tiers.join()) return
  const name = (list: readonly string[]) => (list.length > 0 ? `the tier ${list.join(' and ')}` : 'no environment server')
  throw new TrainError(
    'CONFIG_INVALID',
    `This run began with commands in ${name(earlier)}, and they would go on in ${name(tiers)}; start the environment with that tier, or a new run with --new.`,
  )
}

/**
 * Turns an error of the file system that no package has wrapped, such as a full disk, into an error of the store; its `details.run` is the
 * run.
 */
function toRunFailure(error: unknown, path: string): TrainError {
  const { code: systemCode, errno } = error as NodeJS.ErrnoException
  const isSystemError = typeof systemCode === 'string' && typeof errno === 'number'
  const { code, message, cause, details } = isSystemError ? toStoreError(error, path) : toTrainError(error, 'AGENT_FAILED')
  return new TrainError(code, message, { cause: cause ?? error, details: { ...details, run: path } })
}
