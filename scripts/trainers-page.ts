import type { TrainerCheck, TrainerFeature } from '@aworld-train/core'
import { trainerChecks } from '@aworld-train/testing'
import { trainerFacts } from '../packages/aworld-train/src/python-trainers.ts'
import { generatedNote, tableLines } from './markdown.ts'
import { featureTitles, termLines } from './works-with.ts'

const trainers = Object.entries(trainerFacts)
/** The page of trainers: what each is, needs and can do, and what its exam cannot see. */
export function trainersPage(): string {
  return [
    '# Trainers',
    '',
    generatedNote,
    '',
    'One agent, one dataset and one reward train with each of these: `trainEngineName`, or `--engine` on the command line, names it. Store, report and dashboard are the same.',
    '',
    ...tableLines(
      ['name', 'what it is', 'tested with', 'environment of Python', 'shortest command'],
      trainers.map(([name, { summary, versions, environment, command }]) => [
        `\`${name}\``,
        summary,
        versions.join(', '),
        environment === null ? 'none' : `${(environment.megabytes / 1000).toFixed(1)} GB, ${environment.seconds} s`,
        `\`${command}\``,
      ]),
    ),
    '',
    'Environments are those for a processor, made on two cores with all downloads in the cache; their files are hard links into it, so that a second environment takes hardly any disk.',
    '',
    '## What each can do',
    '',
    ...tableLines(
      ['', ...trainers.map(([name]) => `\`${name}\``)],
      Object.entries(featureTitles).map(([feature, title]) => [
        title,
        ...trainers.map(([, facts]) => facts.features[feature as TrainerFeature]),
      ]),
    ),
    '',
    '## What each does with a setting',
    '',
    'Every trainer reads the settings of the [configuration](configuration.md) that stand in no row here. Where it is refused, a value other than the default of the trainer is an error before anything starts. Where it has no effect, a note says so. A trainer of your own gets what is handed over in `config`.',
    '',
    ...termLines(),
    '',
    '## What each is compared with',
    '',
    'There is one exam, `describeTrainer` of `@aworld-train/testing`: two tasks, four episodes of each, two turns, one that forks, one whose turn is cut, one whose turn has no text and one that asks in other words than its group, with fixed rewards. What it trains is compared with the episodes, and with a reference in double precision.',
    '',
    ...Object.values(trainerChecks).map((title) => `- ${title}`),
    '',
    `Sat by ${trainers.map(([name]) => `\`${name}\``).join(', ')}.`,
    '',
    'What the exam cannot see:',
    '',
    ...tableLines(
      ['trainer', 'check', 'why'],
      trainers.flatMap(([name, { notShown }]) =>
        Object.entries(notShown).map(([check, reason]) => [`\`${name}\``, trainerChecks[check as TrainerCheck], reason]),
      ),
    ),
    '',
  ].join('\n')
}
