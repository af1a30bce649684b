export { ModuleSettings as TrlSettings } from '../shared/training/module-config.ts'
export { trlTrainer } from './trl-trainer.ts'
