import { errorMessage, type PythonProblem, TrainError, type TrainerPython } from '@aworld-train/core'
import { z } from 'zod'
import { runProcess } from './run-process.ts'

const torchSchema = z.object({
  version: z.string(),
  /** CUDA version that torch was built for, such as `13.0`; null for a build without CUDA. */
  cuda: z.string().nullable(),
  available: z.boolean(),
  devices: z.array(z.object({ name: z.string(), memoryBytes: z.number(), capability: z.string() })),
  error: z.string().nullable(),
})

const probeSchema = z.object({
  executable: z.string(),
  prefix: z.string(),
  version: z.string(),
  platform: z.string(),
  machine: z.string(),
  packages: z.record(z.string(), z.string().nullable()),
  /** Report of importing `torch`; null if it was not imported. */
  torch: torchSchema.nullable(),
})

/** An interpreter, its packages, and the problems of training with it. */
export interface PythonReport extends Readonly<z.output<typeof probeSchema>> {
  readonly path: string
  readonly problems: readonly PythonProblem[]
}

export interface InspectPythonOptions {
  /** Environment of the probe. Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv | undefined
  /** Whether to import torch and ask it for devices, which takes seconds instead of milliseconds. */
  readonly torch?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until the probe is given up. Default 20,000, or 120,000 with `torch`. */
  readonly timeoutMs?: number | undefined
}

const mark = 'aworld-train-probe '

/**
 * Reads versions from the metadata of installed packages. If the trainer lies on PYTHONPATH without metadata, its own file has the version.
 */
const probe = `
import json, platform, sys
from importlib import metadata, util
names, trainer, with_torch = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3] == "torch"
packages = {}
for name in names:
    try:
        packages[name] = metadata.version(name)
    except Exception:
        packages[name] = None
if packages.get(trainer, "") is None:
    spec = util.find_spec(trainer.replace("-", "_"))
    for folder in (spec.submodule_search_locations or []) if spec else []:
        try:
            packages[trainer] = open(folder + "/version/version").read().strip() or None
        except OSError:
            pass
facts = None
if with_torch:
    facts = {"version": packages.get("torch") or "", "cuda": None, "available": False, "devices": [], "error": None}
    try:
        import torch
        facts["version"], facts["cuda"], facts["available"] = torch.__version__, torch.version.cuda, torch.cuda.is_available()
        for index in range(torch.cuda.device_count() if facts["available"] else 0):
            of = torch.cuda.get_device_properties(index)
            facts["devices"].append({"name": of.name, "memoryBytes": of.total_memory, "capability": "%d.%d" % (of.major, of.minor)})
    except Exception as error:
        facts["error"] = "%s: %s" % (type(error).__name__, error)
print("${mark}" + json.dumps({"executable": sys.executable, "prefix": sys.prefix, "version": platform.python_version(), "platform": sys.platform,
    "machine": platform.machine(), "packages": packages, "torch": facts}))
`

/** Asks an interpreter for its version and the packages of a trainer. Throws TRAINER_ENVIRONMENT if it cannot be run. */
export async function inspectPython(path: string, trainer: TrainerPython, options: InspectPythonOptions = {}): Promise<PythonReport> {
  const { env, torch = false, signal, timeoutMs = torch ? 120_000 : 20_000 } = options
  const args = ['-B', '-c', probe, JSON.stringify(trainer.inspected), trainer.distribution, torch ? 'torch' : '']
  const result = await runProcess(path, args, { env, signal, timeoutMs }).catch((cause: unknown) => {
    signal?.throwIfAborted()
    const reason = cause instanceof Error && cause.name === 'TimeoutError' ? `gave no answer within ${timeoutMs} ms` : messageOf(cause)
    throw new TrainError('TRAINER_ENVIRONMENT', `${path} cannot be used as Python: ${reason}.`, { cause })
  })
  const line = result.stdout.split('\n').findLast((each) => each.startsWith(mark))
  if (line === undefined) {
    const output = (result.stderr.trim() || result.stdout.trim()).split('\n').slice(-3).join(' / ')
    throw new TrainError(
      'TRAINER_ENVIRONMENT',
      `${path} cannot be used as Python: it ended with ${result.code}, saying: ${output || 'nothing'}.`,
    )
  }
  const facts = probeSchema.parse(JSON.parse(line.slice(mark.length)))
  return { path, ...facts, problems: trainer.judge(facts) }
}

function messageOf(cause: unknown): string {
  const code = (cause as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return 'there is no such program'
  if (code === 'EACCES') return 'it may not be executed'
  return errorMessage(cause)
}
