import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isRecord, RunManifest, TrainError } from '@aworld-train/core'
import { redactSecrets } from './redact-secrets.ts'
import { anotherVersion } from './run-database.ts'
import { storeVersion } from './schema.ts'
import { corrupt, toStoreError } from './store-error.ts'
import { writeJsonAtomically } from './write-json-atomically.ts'

/** Input for the manifest of a new run. */
export interface ManifestInput {
  readonly kind?: RunManifest['kind'] | undefined
  readonly name?: string | undefined
  readonly configurationHash?: string | undefined
  readonly versions?: Readonly<Record<string, string>> | undefined
  readonly provenance?: Readonly<Record<string, unknown>> | undefined
}

/** Reads the manifest of the run at `path`; `null` if there is none. Rejects with STORE_VERSION or STORE_CORRUPT. */
export async function readManifest(path: string): Promise<RunManifest | null> {
  let text: string
  try {
    text = await readFile(join(path, 'manifest.json'), 'utf8')
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') {
      if (existsSync(join(path, 'run.db'))) throw corrupt(path, 'its manifest.json is missing')
      return null
    }
    throw toStoreError(error, path)
  }
  return parseManifest(path, text)
}

/** Checks the text of a manifest. Throws STORE_VERSION or STORE_CORRUPT. */
export function parseManifest(path: string, text: string): RunManifest {
  let manifest: { readonly version?: unknown } | null
  try {
    manifest = JSON.parse(text)
  } catch {
    throw corrupt(path, 'its manifest.json is not JSON')
  }
  if (manifest?.version !== storeVersion) throw anotherVersion(path, manifest?.version)
  const { data, error } = RunManifest.safeParse(manifest)
  if (data) return data
  throw corrupt(path, `its manifest.json has no valid ${[...new Set(error.issues.map((issue) => issue.path.join('.')))].join(', ')}`)
}

export async function writeManifest(path: string, manifest: RunManifest): Promise<void> {
  try {
    await writeJsonAtomically(join(path, 'manifest.json'), manifest)
  } catch (error) {
    throw toStoreError(error, path)
  }
}

/**
 * Returns the manifest of the run at `path`, and writes it if the run is new. Rejects with CONFIG_INVALID if the
 * run has another configuration.
 */
export async function ensureManifest(path: string, input: ManifestInput | undefined): Promise<RunManifest> {
  const existing = await readManifest(path)
  if (!existing) {
    const manifest = newManifest(basename(path), input)
    await writeManifest(path, manifest)
    return manifest
  }
  const { configurationHash } = input ?? {}
  if (configurationHash !== undefined && configurationHash !== existing.configurationHash)
    throw anotherConfiguration(path, existing, input?.provenance?.['inputs'])
  return existing
}

/** The error for a run that has another configuration. `inputs` are the hashes of the present one, by name. */
export function anotherConfiguration(path: string, { provenance }: RunManifest, inputs: unknown): TrainError {
  const [before, now] = [hashesOf(provenance?.['inputs']), hashesOf(inputs)]
  const changed = [...new Set([...before.keys(), ...now.keys()])].filter((name) => before.get(name) !== now.get(name))
  const isKnown = before.size > 0 && now.size > 0 && changed.length > 0
  const what = isKnown ? `. What differs: ${changed.join(', ')}` : ": settings, tasks, or the agent's, reward's or warm-up's file"
  return new TrainError(
    'CONFIG_INVALID',
    `Run ${path} was started with another configuration${what}. Use those of that run, or start a new run with --new.`,
    { details: { path, changed } },
  )
}

const hashesOf = (inputs: unknown) => new Map(Object.entries(isRecord(inputs) ? inputs : {}))

export function newManifest(
  fallbackName: string,
  { kind, name, configurationHash, versions, provenance }: ManifestInput = {},
): RunManifest {
  return {
    version: storeVersion,
    kind: kind ?? 'training',
    name: name ?? fallbackName,
    createdAt: Date.now(),
    configurationHash: configurationHash ?? '',
    status: 'running',
    versions: { node: process.versions.node, ...versions },
    provenance: redactSecrets(provenance ?? {}) as Record<string, unknown>,
  }
}
