/** Every dialect the gateway speaks. Adding one is its file and its line here. */
import { chat } from './chat.ts'
import { completions } from './completions.ts'
import type { Dialect } from './dialect.ts'
import { embeddings } from './embeddings.ts'
import { messages } from './messages.ts'
import { moderations } from './moderations.ts'
import { responses } from './responses.ts'
import { speech } from './speech.ts'
import { transcriptions } from './transcriptions.ts'

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
