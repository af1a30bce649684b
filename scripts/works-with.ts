import type { TrainerFeature } from '@aworld-train/core'
import { ArealSettings } from '@aworld-train/trainers/areal'
import { SwiftSettings } from '@aworld-train/trainers/swift'
import { TrlSettings } from '@aworld-train/trainers/trl'
import { VerlSettings } from '@aworld-train/trainers/verl'
import { TrainerSettings } from '@aworld-train/training'
import { trainerFacts } from '../packages/aworld-train/src/python-trainers.ts'
import { type SettingTerm, settingTerms, type TrainerColumn } from '../packages/aworld-train/src/setting-terms.ts'
import { tableLines } from './markdown.ts'

export const termWords: Readonly<Record<SettingTerm, string>> = {
  read: 'read',
  refused: 'refused',
  note: 'no effect',
  'handed over': 'handed over',
}

export type ListedTrainer = Exclude<TrainerColumn, 'own'>

export const featureTitles: Readonly<Record<TrainerFeature, string>> = {
  processor: 'trains on a processor',
  gpu: 'trains on GPUs',
  severalRanks: 'several ranks',
  vllm: 'vLLM samples',
  lora: 'LoRA',
  klTerm: 'KL term',
  severalRows: 'several rows a rollout',
  evaluation: 'evaluates test tasks',
  resume: 'goes on after a kill',
  export: 'exports a Hugging Face folder',
}

/** The guide of each trainer, which has a place for the table; that of the trainer in the box is the page of the configuration. */
export const guides: Readonly<Record<Exclude<ListedTrainer, 'local'>, string>> = {
  tinker: 'docs/3.guides/tinker.md',
  verl: 'docs/3.guides/verl.md',
  trl: 'docs/3.guides/trl.md',
  areal: 'docs/3.guides/areal.md',
  swift: 'docs/3.guides/swift.md',
}

const ownKeysIn = (settings: { readonly shape: object }) =>
  Object.keys(settings.shape).flatMap((key) => (key in TrainerSettings.shape ? [] : [`\`${key}\``]))

/** Keys that stand in no configuration but that of one trainer. */
const ownKeys: Readonly<Record<ListedTrainer, readonly string[]>> = {
  local: [],
  tinker: ['`tinker`'],
  verl: [...ownKeysIn(VerlSettings), '`reward.native`'],
  trl: ownKeysIn(TrlSettings),
  areal: ownKeysIn(ArealSettings),
  swift: ownKeysIn(SwiftSettings),
}

/** What works with a trainer: what it says of itself, and what it does with the settings of any training. */
export function worksLines(trainer: ListedTrainer): string[] {
  const { features } = trainerFacts[trainer]!
  const others = (Object.keys(ownKeys) as ListedTrainer[]).filter((other) => other !== trainer)
  const does = (term: SettingTerm) => listed(([, row]) => row[trainer] === term)
  const alone = listed(([, row]) => row[trainer] === 'read' && others.every((other) => row[other] !== 'read'))
  const lists = [
    ['keys of its own', ownKeys[trainer]],
    ['settings that no other trainer reads', alone],
    ['settings that it refuses', does('refused')],
    ['settings without effect, which a note says', does('note')],
  ] as const
  return tableLines(
    ['', `\`${trainer}\``],
    [
      ...Object.entries(featureTitles).map(([feature, title]) => [title, features[feature as TrainerFeature]]),
      ...lists.flatMap(([title, names]) => (names.length === 0 ? [] : [[title, names.join(', ')]])),
    ],
  )
}

/** What each trainer does with the settings that not all of them read; settings of one kind share a row. */
export function termLines(): string[] {
  const columns: readonly TrainerColumn[] = [...(Object.keys(ownKeys) as ListedTrainer[]), 'own']
  const cellsOf = (row: Entry[1]) => columns.map((column) => termWords[row[column]])
  const kinds = Object.groupBy(Object.values(settingTerms), (row) => cellsOf(row).join(' | '))
  return tableLines(
    ['setting', ...columns.map((column) => (column === 'own' ? 'your own' : `\`${column}\``))],
    Object.entries(kinds).flatMap(([cells]) =>
      cells === columns.map(() => 'read').join(' | ') ? [] : [[listed(([, row]) => cellsOf(row).join(' | ') === cells).join(', '), cells]],
    ),
  )
}

type Entry = readonly [name: string, row: Readonly<Record<TrainerColumn, SettingTerm>>]

/** Settings that are chosen; a section whose settings all are stands once. */
function listed(isChosen: (entry: Entry) => boolean): string[] {
  const sections = Object.groupBy(Object.entries(settingTerms), ([name]) => name.split('.')[0]!)
  return Object.entries(sections).flatMap(([section, entries = []]) => {
    const chosen = entries.filter(isChosen).map(([name]) => name)
    return (chosen.length > 1 && chosen.length === entries.length ? [section] : chosen).map((name) => `\`${name}\``)
  })
}

const [begin, end] = ['<!-- What works, written by `npm run generate`: -->', '<!-- : what works -->']

/** A guide with the table of its trainer in its place. Throws where the guide has none. */
export function withWorks(text: string, trainer: ListedTrainer): string {
  const [before, rest, ...more] = text.split(begin)
  const after = rest?.split(end)[1]
  if (after === undefined || more.length > 0)
    throw new Error(`The guide of ${trainer} has no place for what works with it; write these two lines into it once:\n${begin}\n${end}`)
  return `${before}${begin}\n\n${worksLines(trainer).join('\n')}\n\n${end}${after}`
}
