import { describeLearner } from '@aworld-train/testing'
import { createBigramPolicy } from './bigram-policy.ts'

describeLearner({
  name: 'bigram',
  create: async () => ({ ...createBigramPolicy(8), close: async () => {} }),
  learningRate: 8,
})
