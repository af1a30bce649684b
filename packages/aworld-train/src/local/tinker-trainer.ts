import { tinkerPolicy } from '../policies/tinker-policy.ts'
import { LocalTrainer } from './local-trainer.ts'

/** Our own loop over a LoRA adapter that a Tinker service samples and trains. */
export class TinkerTrainer extends LocalTrainer {
  protected override readonly policyKind = tinkerPolicy
}
