import { TrainError } from '@aworld-train/core'
import type { FrozenModel } from '../models/model-table.ts'
import type { GatewayWarning } from '../options.ts'

/** Watches which models answer. */
export interface ModelNames {
  /** `answered` is the name in an answer of `model`, or `null` if it has none. Throws FROZEN_MODEL_FAILED where the route wants the exact name. */
  answered(model: FrozenModel, answered: string | null): void
}

/** Most warnings of one gateway. */
const maxNames = 64

/** Whether the name in an answer is the one that was asked for, or that name with a date or a number behind it. */
export function isModelOf(requested: string, answered: string): boolean {
  if (answered === requested) return true
  const base = requested.replace(/-latest$/, '')
  return answered.startsWith(base) && /^[-@]\d[\d.-]*$/.test(answered.slice(base.length))
}

/** Warns once of each model that answers in place of another one. */
export function createModelNames(warn: (warning: GatewayWarning) => void): ModelNames {
  const warned = new Set<string>()
  return {
    answered({ name, model, exactModel }, answered) {
      if (exactModel && answered !== model) {
        const what = answered === null ? 'its answer names no model' : `"${answered.slice(0, 200)}" answered`
        const message = `Model "${name}" was asked for "${model}", and ${what}; correct the name, or let answers of other names pass: exactModel of models.NAME, or --exact-model of eval.`
        throw new TrainError('FROZEN_MODEL_FAILED', message)
      }
      if (answered === null || isModelOf(model, answered)) return
      const key = JSON.stringify([name, answered])
      if (warned.has(key) || warned.size >= maxNames) return
      warned.add(key)
      warn({
        code: 'OTHER_MODEL',
        message: `Model "${name}" was asked for "${model}", and "${answered.slice(0, 200)}" answers; check the name and the server, or refuse such answers by exactModel of models.NAME, or by --exact-model of eval.`,
        details: { model: name, requested: model, answered },
      })
    },
  }
}
