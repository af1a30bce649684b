import { expect, it } from 'vitest'
import { loadDataset } from '../dataset/load-dataset.ts'
import { datasetFindings } from './named-dataset.ts'

const load = (split: string, row: object) => loadDataset([{ kind: 'easy', ...row }], { split })

it('says once what two datasets have in common, and warns of what is probably meant otherwise alone', async () => {
  const train = await load('train', { prompt: 'a', answer: 1, anwser: 2 })
  const test = await load('test', { prompt: 'b', answer: 1 })
  expect(datasetFindings(train, test)).toEqual({
    notes: [expect.stringMatching(/^"kind" goes to the reward/)],
    warnings: [expect.stringMatching(/^"anwser" goes .* Did you mean "answer" by "anwser"\?$/)],
  })
})

it('warns of test tasks that are trained on', async () => {
  const [train, test] = [await load('train', { prompt: 'a', answer: 1 }), await load('test', { prompt: 'a', answer: 1 })]
  expect(datasetFindings(train, test).warnings).toEqual([expect.stringMatching(/^1 of 1 test tasks are training tasks too/)])
})
