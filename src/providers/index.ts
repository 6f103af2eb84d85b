/** Every provider kind. Adding one is its file and its line here. */
import { openai } from './openai.ts'
import type { ProviderKind } from './provider.ts'
import { simulator } from './simulator.ts'

export const providerKinds: ReadonlyMap<string, ProviderKind> = new Map(
  [openai, simulator].map((kind) => [kind.kind, kind]),
)
