// The main example names one trainer, and every other one reads the same configuration.
import { join } from 'node:path'
import { pythonTrainers, trainerSections } from 'aworld-train'
import { expect, test } from 'vitest'
import definition from '../examples/periodic-table/aworld-train.config.ts'
import { repository } from './support/run-cli.ts'

const read = (name: string, config: object) =>
  pythonTrainers
    .find((trainer) => trainer.name === name)!
    .readConfig(config, { baseDirectory: join(repository, 'examples/periodic-table'), environment: {}, sections: trainerSections })

test.each(pythonTrainers.map(({ name }) => [name]))('%s takes the configuration of the main example', async (name) => {
  const { problems, notes, settings, names } = await read(name, definition.config as object)
  expect(problems).toEqual([])
  const others = Object.keys(definition.config as object).filter((key) => key !== name && trainerSections.includes(key))
  expect(others).toContain('tinker')
  expect(notes).toContain(`${name} leaves aside what is for other trainers: ${others.join(', ')}.`)
  expect(names.model).toMatch(/model$/)
  expect(settings).toMatchObject({ limits: { maxTurns: 6 }, maxCompletionTokens: 40, concurrency: 128 })
})

test.each(pythonTrainers.map(({ name }) => [name]))('%s still refuses a key of ours that there is not', async (name) => {
  const { problems } = await read(name, { ...(definition.config as object), training: { stepz: 3 } })
  expect(problems.join('\n')).toContain('Did you mean "steps"?')
})
