export type { TrlConfig, TrlPlan } from './config/trl-config.ts'
export { TrlSettings } from './config/trl-settings.ts'
export { trlTrainer } from './trl-trainer.ts'
