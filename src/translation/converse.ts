/** Bedrock's Converse: one language for the models of many makers. No application speaks it to this gateway. */
import { readConverseAnswer, readConverseError } from './converse-answers.ts'
import { converseFeatures } from './converse-features.ts'
import { ConverseStreamReader } from './converse-read-stream.ts'
import { writeConverseRequest } from './converse-write-request.ts'
import type { Language } from './language.ts'

export const converse: Language = {
  provider: {
    name: 'converse',
    writeRequest: writeConverseRequest,
    readAnswer: readConverseAnswer,
    readError: readConverseError,
    streamReader: () => new ConverseStreamReader(),
  },
  caller: null,
  features: converseFeatures,
}
