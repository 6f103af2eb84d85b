/** The dialect of every family. To add one: its folder, its row in `families.ts` and its line here. */

import { speech } from './audio/speech.ts'
import { transcriptions } from './audio/transcriptions.ts'
import { translations } from './audio/translations.ts'
import { chat } from './chat/dialect.ts'
import { completions } from './completions/dialect.ts'
import type { Dialect } from './dialect.ts'
import { embeddings } from './embeddings/dialect.ts'
import type { Family } from './families.ts'
import { gemini } from './gemini/dialect.ts'
import { imageEdits, images } from './images/dialect.ts'
import { mcp } from './mcp/dialect.ts'
import { messages } from './messages/dialect.ts'
import { moderations } from './moderations/dialect.ts'
import { realtime } from './realtime/dialect.ts'
import { rerank } from './rerank/dialect.ts'
import { responses } from './responses/dialect.ts'

export const dialects: Readonly<Record<Family, Dialect>> = {
  chat,
  responses,
  messages,
  gemini,
  embeddings,
  transcriptions,
  translations,
  speech,
  completions,
  moderations,
  images,
  image_edits: imageEdits,
  rerank,
  realtime,
  mcp,
}
