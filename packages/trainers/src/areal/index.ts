export { arealTrainer } from './areal-trainer.ts'
export type { ArealConfig, ArealPlan } from './config/areal-config.ts'
export { ArealSettings } from './config/areal-settings.ts'
