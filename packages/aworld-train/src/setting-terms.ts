import type { SettingName } from '@aworld-train/training'

/**
 * A trainer's treatment of a written setting: it reads it, refuses it, notes that it has no effect or, if it is a trainer of your own,
 * hands it to its loop in `config`.
 */
export type SettingTerm = 'read' | 'refused' | 'note' | 'handed over'

export type TrainerColumn = 'local' | 'tinker' | 'verl' | 'trl' | 'areal' | 'swift' | 'own'

type Row = Readonly<Record<TrainerColumn, SettingTerm>>

const read: Row = { local: 'read', tinker: 'read', verl: 'read', trl: 'read', areal: 'read', swift: 'read', own: 'read' }
/** Read by the trainers here. A trainer of your own hands it to its loop. */
const ofTheLoop: Row = { ...read, own: 'handed over' }
/** For the engine that samples and trains in this process. Frameworks have their own, as a note says. */
const ofTheBox: Row = { ...read, tinker: 'note', verl: 'note', trl: 'note', areal: 'note', swift: 'note' }

/** Refused by our own learners, which train on the whole distribution. */
const sampledWhole: Row = { ...read, local: 'refused', tinker: 'refused', own: 'refused' }

/** For trainers whose groups our own loop forms. */
const ofOurGroups: Row = {
  local: 'read',
  tinker: 'read',
  verl: 'refused',
  trl: 'refused',
  areal: 'refused',
  swift: 'refused',
  own: 'refused',
}

/** The treatment of every setting by each trainer. A missing setting is a type error. */
export const settingTerms: Readonly<Record<SettingName, Row>> = {
  'model.path': read,
  'model.warmUp': read,
  'model.history': read,
  'model.templateArguments': read,
  'model.maxPromptBytes': read,
  policies: { ...read, verl: 'refused', trl: 'refused', areal: 'refused', swift: 'refused' },
  models: read,
  'agent.malformedCalls': read,
  'environment.collect': read,
  'toolAnswers.maxTokens': read,
  'toolAnswers.cut': read,
  'engine.threads': ofTheBox,
  'engine.simd': ofTheBox,
  'data.trainFiles': read,
  'data.testFiles': read,
  'data.promptKey': read,
  'reward.path': read,
  'reward.name': read,
  'reward.timeoutMs': read,
  'reward.memoryMb': read,
  'reward.concurrency': read,
  'reward.maxCost': read,
  'reward.input': read,
  'reward.unfinished': read,
  'training.steps': ofTheLoop,
  'training.epochs': ofTheLoop,
  'training.promptsPerStep': ofTheLoop,
  'training.samplesPerPrompt': read,
  'training.firstSamples': ofOurGroups,
  'training.solvedReward': ofOurGroups,
  'training.teachingPrompts': ofOurGroups,
  'training.maxPrompts': ofOurGroups,
  'training.maxStaleness': ofOurGroups,
  'training.hardStaleness': ofOurGroups,
  'training.stratify': { ...ofTheLoop, verl: 'refused' },
  'training.passes': ofTheLoop,
  'training.promptsPerUpdate': ofTheLoop,
  'training.advantage': ofTheLoop,
  'training.ownReward': ofTheLoop,
  'training.dropZeroVariance': { ...ofTheLoop, verl: 'note', trl: 'note', areal: 'note', swift: 'note' },
  'training.incompleteEpisodes': ofTheLoop,
  'training.maxSampleTokens': { ...ofTheLoop, trl: 'note', areal: 'note', swift: 'note' },
  'training.clipLow': ofTheLoop,
  'training.clipHigh': ofTheLoop,
  'training.klCoefficient': { ...ofTheLoop, tinker: 'refused', areal: 'refused' },
  'training.entropyCoefficient': { ...ofTheLoop, tinker: 'refused', areal: 'refused', swift: 'refused' },
  'training.aggregation': { ...ofTheLoop, areal: 'refused' },
  'training.loss': { ...ofTheLoop, verl: 'refused', trl: 'refused', areal: 'refused', swift: 'refused' },
  'training.learningRate': ofTheLoop,
  'training.warmupSteps': ofTheLoop,
  'training.warmupFraction': ofTheLoop,
  'training.finalLearningRateFraction': ofTheLoop,
  'training.weightDecay': { ...ofTheLoop, tinker: 'refused' },
  'training.betas': ofTheLoop,
  'training.epsilon': ofTheLoop,
  'training.maxGradNorm': { ...ofTheLoop, tinker: 'refused' },
  'training.checkpointEvery': read,
  'training.evaluateEvery': ofTheLoop,
  'training.logprobCheck.tokens': { ...read, verl: 'note', trl: 'note', areal: 'note', swift: 'note' },
  'training.logprobCheck.tolerance': { ...read, trl: 'note', areal: 'note', swift: 'note' },
  'sampling.temperature': { ...read, tinker: 'refused' },
  'sampling.topP': sampledWhole,
  'sampling.topK': sampledWhole,
  'sampling.maxTokens': read,
  'limits.maxTurns': read,
  'limits.maxTokens': read,
  'limits.maxToolCalls': read,
  'limits.timeoutMs': read,
  'limits.maxCost': read,
  'limits.maxFrozenTokens': read,
  'evaluation.temperature': { ...read, tinker: 'refused' },
  'evaluation.topP': { ...read, trl: 'note', areal: 'note', swift: 'note' },
  'evaluation.topK': { ...read, trl: 'note', areal: 'note', swift: 'note' },
  'evaluation.samplesPerPrompt': read,
  'evaluation.before': ofTheLoop,
  'evaluation.greedy': { ...ofTheLoop, verl: 'note', trl: 'note', areal: 'note', swift: 'note' },
  'evaluation.kindKey': read,
  logging: read,
  projectName: read,
  experimentName: read,
  'gateway.port': read,
  'gateway.host': read,
  'gateway.tls': read,
  'gateway.insecure': read,
  'gateway.publicUrl': read,
  'gateway.trainedCalls': read,
  'gateway.hostedTools': read,
  'gateway.ignore': read,
  'executor.engineName': read,
  'executor.cls': read,
  'executor.address': read,
  'executor.workerNum': read,
  'executor.slots': read,
  'executor.resources': read,
  'executor.env': read,
  'executor.options': read,
  'executor.sequenceDependent': read,
  'executor.port': read,
  'executor.token': read,
  'executor.maxLosses': read,
  'executor.graceMs': read,
  concurrency: read,
  seed: read,
}
