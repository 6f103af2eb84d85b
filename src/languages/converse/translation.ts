/** Bedrock's Converse: one language for the models of many makers. No application speaks it to this gateway. */

import type { Language } from '../translation-language.ts'
import { readConverseAnswer, readConverseError } from './answers.ts'
import { converseFeatures } from './features.ts'
import { ConverseStreamReader } from './read-stream.ts'
import { writeConverseRequest } from './write-request.ts'

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
