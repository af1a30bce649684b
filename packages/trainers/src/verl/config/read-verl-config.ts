import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { formerBlock, isTree, leaves, readTrainerSource, setAt, toYaml, valueAt } from '@aworld-train/training'
import { renderGeneralTerms } from './general-terms.ts'
import { formatOverride, parseOverride } from './hydra-override.ts'
import type { InstalledVerl } from './installed-verl.ts'
import { scriptProblem } from './launch-script.ts'
import { isOwnPath, ownKeys, readOwn, shared } from './own-config.ts'
import { resolveKey } from './resolve-key.ts'
import { type ConfigKey, translateKeys } from './translate-keys.ts'
import type { ConfigText, ReadVerlConfigOptions, VerlConfig, VerlConfigSource, VerlKey } from './verl-config.ts'
import { isGroup } from './verl-keys.ts'
import type { VerlSettings } from './verl-settings.ts'

interface Gathered {
  readonly source: ConfigText
  readonly directory: string
  readonly keys: ConfigKey[]
  readonly own: Record<string, unknown>
  readonly notes: string[]
  readonly problems: string[]
}

/**
 * Reads a configuration in verl's keys, in ours, or both. Throws only the errors of `verl`. `problems` has every problem as a sentence.
 */
export async function readVerlConfig(source: VerlConfigSource, options: ReadVerlConfigOptions = {}): Promise<VerlConfig> {
  const gathered = gather(source, options)
  addOverrides(gathered, options.arguments ?? [], 'an argument')
  const { settings: read, problems: ownProblems, failed, written } = readOwn(gathered.own)
  const terms = renderGeneralTerms(written)
  const spelled = new Set(gathered.keys.map(({ path }) => path))
  const fromTerms = terms.keys
    .filter(({ path }) => !spelled.has(path))
    .map(({ path, value, term }): ConfigKey => ({ path, value, where: term, added: true }))
  const { keys, verl, problems } = await readKeys([...fromTerms, ...gathered.keys], read.python, options)
  const translated = translateKeys(keys, { verl })
  const obeyed = obeyTaken(read, translated.taken, gathered)
  const settings = { ...obeyed.settings, reward: obeyReward(obeyed.settings, translated.keys) }
  const names = namesOf(settings, translated.keys, gathered.directory)
  return {
    source: gathered.source,
    directory: gathered.directory,
    keys: translated.keys,
    settings,
    agentFile: obeyed.agentFile,
    agentName: obeyed.agentName,
    verl,
    version: verl?.version ?? null,
    names: names.names,
    usesModelTemplate: textAt(translated.keys, templateKey) === null,
    longestPrompt: verl && longestPromptOf(translated.keys, verl),
    identity: [...translated.keys.values()].map(({ path, value }) => [path, value]),
    failed: gathered.problems.length > 0 ? ownKeys : failed,
    notes: [...gathered.notes, ...terms.notes, ...translated.notes, ...obeyed.notes],
    problems: [
      ...[...gathered.problems, ...ownProblems, ...terms.problems, ...problems, ...translated.problems].map((problem) =>
        placed(problem, gathered.source),
      ),
      ...names.problems,
    ],
  }
}

type Keys = VerlConfig['keys']

const templateKey = 'actor_rollout_ref.model.custom_chat_template'
const rewardKey = 'reward.custom_reward_function'

/** A key's text; `null` if it has none. */
function textAt(keys: Keys, path: string): string | null {
  const value = resolveKey({ keys }, path)
  return typeof value === 'string' && value !== '' ? value : null
}

/** The parts of a run that the configuration names, in our keys or in verl's. */
function namesOf(
  { data, reward }: VerlSettings,
  keys: Keys,
  directory: string,
): { names: VerlConfig['names']; problems: readonly string[] } {
  const problems: string[] = []
  const filesOf = (ours: readonly string[], path: string): readonly string[] => {
    if (ours.length > 0) return ours
    const value = resolveKey({ keys }, path)
    const files: readonly unknown[] = Array.isArray(value) ? value : value === undefined || value === null || value === '' ? [] : [value]
    return files.flatMap((file) => {
      if (typeof file === 'string') return resolve(directory, file)
      problems.push(`${path} names ${JSON.stringify(file)}, which is no path of a file.`)
      return []
    })
  }
  const names = {
    trainFiles: filesOf(data.trainFiles, 'data.train_files'),
    testFiles: filesOf(data.testFiles, 'data.val_files'),
    promptKey: textAt(keys, 'data.prompt_key') ?? data.promptKey,
    reward: { path: reward.path ?? textAt(keys, `${rewardKey}.path`), name: reward.name ?? textAt(keys, `${rewardKey}.name`) },
    model: textAt(keys, 'actor_rollout_ref.model.path'),
  }
  return { names, problems }
}

/** `null` if verl renders prompts in a special way. */
function longestPromptOf(keys: Keys, { resolved }: InstalledVerl): VerlConfig['longestPrompt'] {
  if (['data.custom_cls.path', templateKey].some((key) => textAt(keys, key) !== null)) return null
  return {
    tokens: Number(resolveKey({ keys }, 'data.max_prompt_length') ?? valueAt(resolved, 'data.max_prompt_length')),
    leftOut: resolveKey({ keys }, 'data.filter_overlong_prompts') === true,
  }
}

/**
 * The keys as the installed verl reads them: overrides by its Hydra, references replaced. Without an installed verl they stay as they are.
 */
async function readKeys(
  written: readonly ConfigKey[],
  python: string | null,
  { verl: readWith }: ReadVerlConfigOptions,
): Promise<{ readonly keys: readonly ConfigKey[]; readonly verl: InstalledVerl | null; readonly problems: readonly string[] }> {
  const groups = written.filter(({ path }) => isGroup(path))
  const plain = written.filter(({ path }) => !isGroup(path))
  const texts = plain.flatMap(({ text }) => text ?? [])
  const read = await readWith?.(python, {
    keys: Object.fromEntries(plain.filter(({ text }) => text === undefined).map(({ path, value }) => [path, value])),
    texts,
    groups: groups.map(({ path, value }) => formatOverride(path, value)),
  })
  const values = new Map(texts.map((text, index) => [text, read?.parsed[index]]))
  const keys = written.flatMap((key) => {
    const value = read && key.text !== undefined ? values.get(key.text) : key.value
    const flat = isTree(value) && Object.keys(value).length > 0 ? [...leaves(value, key.path)] : [[key.path, value] as const]
    return flat.map(([path, member]): ConfigKey => {
      const refers = JSON.stringify(member)?.includes('${') && read
      return { ...key, path, value: member, ...(refers ? { resolved: valueIn(read.values, key.path, path) } : {}) }
    })
  })
  return { keys, verl: read?.verl ?? null, problems: read?.errors ?? [] }
}

/** The value of `path`, which is `key` or is below it. */
const valueIn = (values: Readonly<Record<string, unknown>>, key: string, path: string) =>
  path === key ? values[key] : valueAt({ root: values[key] }, `root${path.slice(key.length)}`)

const placed = (problem: string, { file }: ConfigText) => (file === null ? problem : `${file}: ${problem}`)

function gather(source: VerlConfigSource, { baseDirectory = '.', sections }: ReadVerlConfigOptions): Gathered {
  if (isList(source)) {
    const text = { kind: 'overrides', file: null, text: `${source.join('\n')}\n` } as const
    const gathered: Gathered = { source: text, directory: resolve(baseDirectory), keys: [], own: {}, notes: [], problems: [] }
    addOverrides(gathered, source, 'an override')
    return gathered
  }
  const keys = { name: 'verl', title: 'verl', sections, ownKeys, shared, atTop: true }
  const { tree, own, fields, directory, where, notes, problems } = readTrainerSource(source, {
    ...keys,
    baseDirectory,
    script: scriptProblem,
  })
  // `defaults` is Hydra's list of files, not a setting.
  const { defaults: _, hydra: __, ...ofVerl } = fields
  // These are keys that the user adds, as an override does.
  const section = isTree(tree['verl']) ? tree['verl'] : {}
  const plus = Object.keys({ ...tree, ...section }).flatMap((key) => /^\++(.*)/s.exec(key)?.[1] ?? [])
  return {
    source: textOf(source, where, resolve(baseDirectory)),
    directory,
    keys: [...leaves(ofVerl)].map(([path, value]) => ({
      path,
      value,
      where: where ?? 'the configuration',
      added: plus.some((each) => `${path}.`.startsWith(`${each}.`)),
    })),
    own,
    notes: [...notes],
    problems: [...problems],
  }
}

function textOf(source: Exclude<VerlConfigSource, readonly string[]>, file: string | null, base: string): ConfigText {
  if (source === undefined) return { kind: 'none', file, text: '' }
  if (typeof source !== 'string') return { kind: 'object', file, text: toYaml(source) }
  try {
    return { kind: 'file', file, text: readFileSync(resolve(base, source), 'utf8') }
  } catch {
    // A file that cannot be read is a problem of the configuration already.
    return { kind: 'file', file, text: '' }
  }
}

const isList = (source: VerlConfigSource): source is readonly string[] => Array.isArray(source)

/** Adds overrides of verl's keys, or of ours. Later ones win. */
function addOverrides(gathered: Gathered, overrides: readonly string[], where: string): void {
  for (const text of overrides) {
    const override = parseOverride(text)
    if (typeof override === 'string') {
      gathered.problems.push(override)
      continue
    }
    const { prefix, path, value } = override
    if (prefix === '~') {
      gathered.problems.push(`"${text}" removes a key, which is not possible here; set another value.`)
    } else if (path === 'hydra.run.dir') {
      // Every launch sets this anew.
    } else if (path.startsWith('hydra.')) {
      gathered.notes.push(`${path} is Hydra's own and was left out.`)
    } else if (path.startsWith(`${formerBlock}.`)) {
      const [, ...rest] = path.split('.')
      gathered.problems.push(
        `"${text}" is no override: write ${text.replace(`${formerBlock}.`, '')}, since ${rest.join('.')} stands at the top.`,
      )
    } else if (isOwnPath(path)) {
      setAt(gathered.own, path.split('.'), value)
    } else {
      const earlier = gathered.keys.findIndex((each) => each.path === path)
      if (earlier >= 0) gathered.keys.splice(earlier, 1)
      gathered.keys.push({ path, value, text, where, added: prefix !== '' })
    }
  }
}

/** Applies keys of verl that AWorld Train follows instead of verl. */
function obeyTaken(
  settings: VerlSettings,
  taken: ReadonlyMap<string, unknown>,
  { directory, own }: Gathered,
): { settings: VerlSettings; agentFile: string | null; agentName: string | null; notes: string[] } {
  const rollout = 'actor_rollout_ref.rollout'
  const assistant = taken.get(`${rollout}.multi_turn.max_assistant_turns`)
  const user = taken.get(`${rollout}.multi_turn.max_user_turns`)
  const bounds = [assistant, typeof user === 'number' ? user + 1 : null].filter(
    (each): each is number => typeof each === 'number' && each > 0,
  )
  const ownLimit = isTree(own['limits']) && own['limits']['maxTurns'] !== undefined
  const maxTurns = bounds.length > 0 && !ownLimit ? Math.min(...bounds) : settings.limits.maxTurns
  const agentFile = taken.get(`${rollout}.agent.agent_loop_config_path`)
  const agentName = taken.get(`${rollout}.agent.default_agent_loop`)
  return {
    settings: { ...settings, limits: { ...settings.limits, maxTurns } },
    agentFile: typeof agentFile === 'string' ? resolve(directory, agentFile) : null,
    agentName: typeof agentName === 'string' && agentName !== 'single_turn_agent' ? agentName : null,
    notes:
      bounds.length > 0 && !ownLimit
        ? [`multi_turn.max_assistant_turns and max_user_turns are obeyed by the rollout service: an agent has ${maxTurns} turns.`]
        : [],
  }
}

/** Applies the reward that verl's keys name. Unless verl scores, AWorld Train calls it, and verl gets no function. */
function obeyReward({ reward }: VerlSettings, keys: Map<string, VerlKey>): VerlSettings['reward'] {
  if (reward.native) return reward
  const [path, name] = [keys.get(`${rewardKey}.path`)?.value, keys.get(`${rewardKey}.name`)?.value]
  keys.delete(`${rewardKey}.path`)
  keys.delete(`${rewardKey}.name`)
  if (reward.path !== null || typeof path !== 'string') return reward
  return { ...reward, path, name: typeof name === 'string' ? name : null }
}
