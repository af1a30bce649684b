import { expect, it } from 'vitest'
import { readVerlConfig } from './read-verl-config.ts'
import { resolveKey } from './resolve-key.ts'

const config = (path: string) =>
  readVerlConfig({ actor_rollout_ref: { model: { path } }, trainer: { experiment_name: 'first' } }, { environment: {} })

it.each([
  ['./model', './model'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: OmegaConf's syntax.
  ['${oc.env:MODEL_PATH,Qwen/Qwen3-4B}', 'Qwen/Qwen3-4B'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: OmegaConf's syntax.
  ['${oc.env:OTHER_PATH,none}/b', '/a/b'],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: OmegaConf's syntax.
  ['/models/${trainer.experiment_name}', '/models/first'],
])('%s is %s', async (written, resolved) => {
  expect(resolveKey(await config(written), 'actor_rollout_ref.model.path', { OTHER_PATH: '/a' })).toBe(resolved)
})

it('a key that was not set is undefined, whatever its default', async () => {
  expect(resolveKey(await config('./model'), 'data.train_batch_size', {})).toBeUndefined()
})
