import { swiftEnvironment } from '../../support/python-environment.ts'
import { describeAdapter } from '../support/describe-adapter.ts'

describeAdapter('swift', { python: swiftEnvironment, section: { tuner_type: 'lora', lora_rank: 4 } })
