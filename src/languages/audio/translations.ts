/**
 * Translations, `POST /v1/audio/translations`: as transcriptions, but the text is English, whatever was spoken, and
 * there are no streams.
 */
import type { Dialect } from '../dialect.ts'
import { transcriptions } from './transcriptions.ts'

export const translations: Dialect = {
  ...transcriptions,
  family: 'translations',
  read: (body) => ({ ...transcriptions.read(body), stream: false }),
}
