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
}

/**
 * Writes a `python` that is python3 with the metadata of verl's packages. It runs the scripted Hydra when verl's configuration is asked
 * for, and the scripted trainer in place of verl. `faults` is the file that the trainer reads.
 */
export async function writeScriptedPython(directory: string): Promise<{ readonly python: string; readonly faults: string }> {
  const site = join(directory, 'site')
  for (const [name, version] of Object.entries(packages)) {
    const info = join(site, `${name}-${version}.dist-info`)
    await mkdir(info, { recursive: true })
    await writeFile(join(info, 'METADATA'), `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`)
  }
  await writeFile(join(site, 'platform.py'), 'python_version = lambda: "3.11.7"\nmachine = lambda: "x86_64"\n')
  const python = join(directory, 'python')
  const faults = join(directory, 'faults.json')
  const quoted = (path: string) => `'${path.replaceAll("'", "'\\''")}'`
  const scripted = (file: string) => `${quoted(process.execPath)} ${quoted(join(import.meta.dirname, file))}`
  const hydra = `if [ "$2" = aworld_train_bridge.verl.resolve_config ]; then shift 2; exec ${scripted('scripted-hydra.ts')} "$@"; fi`
  const trainer = `${scripted('scripted-trainer.ts')} ${quoted(faults)}`
  const script = `#!/bin/sh\n${hydra}\nif [ "$1" = -m ]; then shift 2; exec ${trainer} "$@"; fi\nif [ "$1" = -I ]; then exec python3 "$@"; fi\nPYTHONPATH=${quoted(site)} exec python3 -S "$@"\n`
  await writeFile(python, script, { mode: 0o755 })
  return { python, faults }
}
