import type { MachineCheck } from '@aworld-train/core'
import { z } from 'zod'
import { runProcess } from '../../shared/environment/run-process.ts'
import { withBridge } from '../../shared/python-package.ts'

/** Imports of verl's processes: its trainer, whose missing packages show only in a Ray task, and the bridge. */
const modules = ['verl.trainer.main_ppo', 'verl.trainer.ppo.v1', 'aworld_train_bridge.verl.plugin', 'aworld_train_bridge.verl.agent_loop']

const mark = 'aworld-train-imports '
const script = `
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
failed = {}
for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = "%s: %s" % (type(error).__name__, error)
print("\\n${mark}" + json.dumps(failed))
`

export interface TryImportsOptions {
  readonly python: string
  readonly env: NodeJS.ProcessEnv
  readonly signal?: AbortSignal | undefined
}

/** Imports verl's trainer and the bridge in `python`, which takes some 10 s. */
export async function tryImports({ python, env, signal }: TryImportsOptions): Promise<MachineCheck> {
  const started = performance.now()
  const { code, stdout, stderr } = await runProcess(python, ['-B', '-c', script, JSON.stringify(modules)], {
    env: withBridge(env),
    signal,
    timeoutMs: 180_000,
  })
  const line = stdout.split('\n').findLast((each) => each.startsWith(mark))
  if (line === undefined)
    return { name: 'imports', level: 'problem', message: `Python ended with ${code} while it imported verl: ${stderr.trim().slice(-500)}` }
  const failed = Object.entries(z.record(z.string(), z.string()).parse(JSON.parse(line.slice(mark.length))))
  if (failed.length === 0)
    return {
      name: 'imports',
      level: 'ok',
      message: `verl's trainer and the bridge, in ${((performance.now() - started) / 1000).toFixed(0)} s`,
    }
  const message = failed.map(([name, error]) => `${name} cannot be imported: ${error}`).join('\n')
  const remedy = failed.some(([name]) => name.startsWith('verl.')) ? 'Run "aworld-train setup verl".' : 'Report this with what it says.'
  return { name: 'imports', level: 'problem', message: `${message}\n${remedy}` }
}
