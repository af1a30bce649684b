import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const packages = {
  verl: '0.9.1',
  torch: '2.13.0',
  ray: '2.60.0',
  transformers: '5.10.4',
  tensordict: '0.10.0',
  numpy: '2.4.6',
  pyarrow: '26.0.1',
  hydra_core: '1.3.8',
  transferqueue: '0.1.11',
  cachetools: '8.0.0',
  fastapi: '0.165.0',
  uvicorn: '0.54.0',
  aiohttp: '3.14.5',
  accelerate: '1.16.0',
  areal: '1.0.4',
  datasets: '5.1.0',
  msgspec: '0.21.0',
  ms_swift: '4.6.0',
  omegaconf: '2.3.0',
  peft: '0.20.0',
  trl: '1.16.0',
}

/** The answer of a framework that takes every configuration. */
const taken = JSON.stringify({ version: 'scripted', problems: [], notes: [], exact: true })

/**
 * Writes a `python` that is python3 with the metadata of the frameworks' packages. It runs the scripted Hydra when verl's configuration is
 * asked for, takes every configuration of the other frameworks, and runs the scripted trainer in place of verl. `faults` is the file that
 * the trainer reads. `starts` has a line for each start: its arguments, or "probe" for a script. `versions` replace those of packages.
 */
export async function writeScriptedPython(
  directory: string,
  versions: Partial<typeof packages> = {},
): Promise<{ readonly python: string; readonly faults: string; readonly starts: string }> {
  const site = join(directory, 'site')
  for (const [name, version] of Object.entries({ ...packages, ...versions })) {
    const info = join(site, `${name}-${version}.dist-info`)
    await mkdir(info, { recursive: true })
    await writeFile(join(info, 'METADATA'), `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`)
  }
  await writeFile(join(site, 'platform.py'), 'python_version = lambda: "3.11.7"\nmachine = lambda: "x86_64"\n')
  const python = join(directory, 'python')
  const faults = join(directory, 'faults.json')
  const starts = join(directory, 'starts')
  const quoted = (path: string) => `'${path.replaceAll("'", "'\\''")}'`
  const scripted = (file: string) => `${quoted(process.execPath)} ${quoted(join(import.meta.dirname, file))}`
  const hydra = `if [ "$2" = aworld_train_bridge.verl.resolve_config ]; then shift 2; exec ${scripted('scripted-hydra.ts')} "$@"; fi`
  const trainer = `${scripted('scripted-trainer.ts')} ${quoted(faults)}`
  const reader = `case "$*" in "-W ignore -m aworld_train_bridge."*" --check") while read -r _; do echo '${taken}'; done; exit;; esac`
  const script = `#!/bin/sh\nif [ "$2" = -c ]; then echo probe; else echo "$*"; fi >> ${quoted(starts)}\n${hydra}\n${reader}\nif [ "$1" = -m ]; then shift 2; exec ${trainer} "$@"; fi\nif [ "$1" = -I ]; then exec python3 "$@"; fi\nPYTHONPATH=${quoted(site)} exec python3 -S "$@"\n`
  await writeFile(python, script, { mode: 0o755 })
  return { python, faults, starts }
}
