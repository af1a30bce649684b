import type { TrainerFacts } from '@aworld-train/core'
import { arealTrainer } from '@aworld-train/trainers/areal'
import type { Trainer } from '@aworld-train/trainers/shared'
import { swiftTrainer } from '@aworld-train/trainers/swift'
import { trlTrainer } from '@aworld-train/trainers/trl'
import { verlTrainer } from '@aworld-train/trainers/verl'
import { localFacts } from './local/local-facts.ts'
import { tinkerFacts } from './local/tinker-facts.ts'

/** The frameworks of Python that train. Their names are values of `trainEngineName` and of the trainer in `setup` and `doctor`. */
export const pythonTrainers: readonly Trainer[] = [verlTrainer, trlTrainer, arealTrainer, swiftTrainer]

/** Trainers that train every row of a rollout. */
export const takersOfAllRows: readonly string[] = [
  'local',
  'tinker',
  ...pythonTrainers.filter(({ rows }) => rows.includes('all')).map(({ name }) => name),
]

/** The trainer of each value of `trainEngineName`, for the page docs/4.reference/trainers.md. */
export const trainerFacts: Readonly<Record<string, TrainerFacts>> = {
  local: localFacts,
  tinker: tinkerFacts,
  ...Object.fromEntries(pythonTrainers.flatMap(({ name, facts }) => (facts ? [[name, facts]] : []))),
}
