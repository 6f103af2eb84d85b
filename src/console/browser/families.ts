/**
 * The families of the gateway. The compiler compares them with the server's, whose values the browser does not load.
 */
import type { ModelFamily } from '../../languages/families.ts'

/** Whether a dry run takes its requests: JSON that a person can write down, with an answer that policies may read. */
const isTried: Readonly<Record<ModelFamily, boolean>> = {
  chat: true,
  responses: true,
  messages: true,
  gemini: true,
  embeddings: true,
  transcriptions: false,
  translations: false,
  speech: false,
  completions: true,
  moderations: true,
  images: true,
  image_edits: false,
  rerank: true,
  realtime: false,
}

export const families: readonly string[] = Object.keys(isTried)
export const triedFamilies: readonly string[] = Object.entries(isTried).flatMap(([name, tried]) =>
  tried ? [name] : [],
)
