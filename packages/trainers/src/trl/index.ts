export { TrlSettings } from './config/trl-settings.ts'
export { trlTrainer } from './trl-trainer.ts'
