import { Command } from 'commander'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { applyDefinition, defineCommand } from './define-command.ts'

test('a number out of its bounds is refused in the words of a person', async () => {
  const definition = defineCommand({
    arguments: [],
    options: z.object({ steps: z.int().min(1).max(9).default(1).describe('steps') }),
    run: async () => undefined,
  })
  const refusal = async (value: string) => {
    const written: string[] = []
    const command = new Command('try').exitOverride().configureOutput({ writeErr: (text) => void written.push(text) })
    applyDefinition(command, definition, async () => {})
    await expect(command.parseAsync(['--steps', value], { from: 'user' })).rejects.toThrow()
    return written.join('').trim()
  }
  expect(await refusal('0')).toBe("error: option '--steps <number>' argument '0' is invalid. It must be at least 1.")
  expect(await refusal('10')).toMatch(/It must be at most 9\.$/)
  expect(await refusal('1.5')).toMatch(/It must be a whole number\.$/)
  expect(await refusal('many')).toMatch(/Give a number\.$/)
})
