import { trlEnvironment } from '../../support/python-environment.ts'
import { describeAdapter } from '../support/describe-adapter.ts'

describeAdapter('trl', { python: trlEnvironment, section: { lora: { r: 4, target_modules: 'all-linear' } } })
