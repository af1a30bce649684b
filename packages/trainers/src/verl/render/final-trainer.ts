import { copyOf, type KeyTree, leafPaths, leaves, setAt } from '@aworld-train/training'
import { Document, isMap, isScalar, type YAMLMap } from 'yaml'
import type { VerlPlan } from '../config/verl-config.ts'
import { VerlSettings } from '../config/verl-settings.ts'

/** Text of `final_trainer.yaml`: the whole resolved configuration, with a comment at every key that is not verl's default. */
export function renderFinalTrainer({ tree, keys, settings, config, run, verl }: VerlPlan): string {
  const whole = copyOf(tree) as Record<string, unknown>
  for (const [path, value] of changedOf(settings)) setAt(whole, path, value)
  const document = new Document(whole)
  document.commentBefore = [
    ` Configuration of verl ${verl.version} for "${run.name}", as it is started with run.sh.`,
    ` Read from ${config.source.file ?? describeKind(config.source.kind)}. A key without a comment has verl's default, or is of our side of the run.`,
    ' user: set there, at the place named. derived: filled in by AWorld Train, for the reason named.',
  ].join('\n')
  for (const { path, origin, why } of keys.values()) comment(document.contents, path.split('.'), ` ${origin}: ${why}`)
  return document.toString({ lineWidth: 0, minContentWidth: 0 })
}

const describeKind = (kind: string) => (kind === 'none' ? 'no configuration' : kind === 'overrides' ? 'overrides' : 'an object')

/** Our settings that are not the default; a function by its name. */
export function withoutDefaults(settings: Partial<VerlSettings>): Record<string, unknown> {
  const changed: Record<string, unknown> = {}
  for (const [path, value] of changedOf(settings)) setAt(changed, path, value)
  return changed
}

function changedOf(settings: Partial<VerlSettings>): (readonly [path: readonly string[], value: unknown])[] {
  const defaults = new Map(leaves(VerlSettings.parse({}) as KeyTree))
  return [...leafPaths(settings as KeyTree)]
    .filter(([path, value]) => JSON.stringify(defaults.get(path.join('.'))) !== JSON.stringify(value))
    .map(([path, value]) => [path, typeof value === 'function' ? value.name || 'a function' : value])
}

/** Puts a comment after a scalar, or above a list or mapping. */
function comment(node: unknown, path: readonly string[], text: string): void {
  if (!isMap(node)) return
  const [key, ...rest] = path
  const pair = (node as YAMLMap).items.find((item) => (isScalar(item.key) ? item.key.value : item.key) === key)
  if (!pair) return
  if (rest.length > 0) comment(pair.value, rest, text)
  else if (isScalar(pair.value)) pair.value.comment = text.replaceAll('\n', ' ')
  else if (isScalar(pair.key)) pair.key.commentBefore = text.replaceAll('\n', ' ')
}

/** Text of the configuration as the user wrote it, and the name of its copy. */
export function sourceCopy({ config: { source } }: VerlPlan): { name: string; text: string } | null {
  if (source.text === '' || source.kind === 'none') return null
  const ending = source.kind === 'overrides' ? 'txt' : (/\.(json|ya?ml)$/.exec(source.file ?? '')?.[1] ?? 'yaml')
  return { name: `config.source.${ending}`, text: source.text }
}
