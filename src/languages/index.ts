/** Every dialect the gateway speaks. Adding one is its file and its line here. */

import { speech } from './audio/speech.ts'
import { transcriptions } from './audio/transcriptions.ts'
import { chat } from './chat/dialect.ts'
import { completions } from './completions/dialect.ts'
import type { Dialect } from './dialect.ts'
import { embeddings } from './embeddings/dialect.ts'
import { messages } from './messages/dialect.ts'
import { moderations } from './moderations/dialect.ts'
import { responses } from './responses/dialect.ts'

export const dialects: readonly Dialect[] = [
  chat,
  responses,
  messages,
  embeddings,
  transcriptions,
  speech,
  completions,
  moderations,
]
